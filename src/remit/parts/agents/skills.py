"""An agent under skills: what it is told of them, and what each of them lets it call.

The model sees a catalog: the skills' names and descriptions, in the tools by which it reads and activates them. What
these say is their authors', so it never counts as trusted text, unless the operator vouches for the skill. Limits are
not left to the model, nor to this loop: every call passes the gate under an overlay of the active skills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import RunError
from remit.jobs.answers import CallError
from remit.jobs.skills import ACTIVATE, READ, Skilled, in_force, pins_of
from remit.journal.kinds import SkillPin
from remit.models.prompt import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remit.jobs.run import Run

_WIRE_READ: Final = READ.replace(".", "__")
_WIRE_ACTIVATE: Final = ACTIVATE.replace(".", "__")
_TOLD: Final = (
    f"You work under skills: packages of instructions. The tool {_WIRE_READ} lists them. Before you do what a skill is "
    "about, read it there, and then the files that it names as far as you need them."
)
_FIRST: Final = "SKILL.md"


class AgentSkills:
    """The skills of one agent."""

    def __init__(self, pins: Iterable[SkillPin]) -> None:
        self._pins = {pin.name: pin for pin in pins}

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._pins)

    @property
    def skilled(self) -> Skilled:
        """Return what they let calls do as things stand."""
        return Skilled(self._pins.values())

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the texts of their authors that the model sees beside its messages."""
        return tuple(_line(pin) for pin in self._pins.values() if not pin.trusted)

    @property
    def specs(self) -> list[ToolSpec]:
        """Return the tools by which the model reads and activates them; they hold the catalog."""
        active, offered = self._names(offered=False), self._names(offered=True)
        if not self._pins:
            return []
        reading = ToolSpec(
            name=_WIRE_READ,
            description=_catalog("Read a file of a skill; without a path its instructions. The skills:", active),
            schema=_schema({"name": _one_of(active), "path": {"type": "string"}}, "name"),
        )
        if not offered:
            return [reading]
        names = {"type": "array", "items": _one_of(offered), "minItems": 1}
        about = _catalog("Come under skills: then their tools can be used. Those that can be activated:", offered)
        return [reading, ToolSpec(name=_WIRE_ACTIVATE, description=about, schema=_schema({"names": names}, "names"))]

    def instructions(self, text: str) -> str:
        """Return the system message of a conversation that begins."""
        return "\n\n".join(part for part in (text, _TOLD) if part) if self._pins else text

    def patterns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tools that are offered: those that were asked for, else those of the active skills."""
        if names or not self._pins:
            return names
        # As patterns, so that one that policy forbids is not offered, and is no error.
        return tuple(dict.fromkeys(_loose(tool) for pin in self._names(offered=False) for tool in pin.tools))

    def has(self, tool: str) -> bool:
        """Return whether a tool, by the name that models see, is one of `specs`."""
        return any(spec.name == tool for spec in self.specs)

    def arguments(self, tool: str, args: dict[str, Any]) -> tuple[dict[str, Any], bool] | None:
        """Return the arguments of a call of one of `specs`, and whether its result is vouched for; None: it is refused.

        A skill is read in the version that was taken up.
        """
        if tool == _WIRE_READ:
            pin = self._pins.get(str(args.get("name")))
            if pin is None or pin.offered:
                return None
            return {"name": pin.name, "path": str(args.get("path") or _FIRST), "digest": pin.digest}, pin.trusted
        names = args.get("names")
        offered = {pin.name for pin in self._names(offered=True)}
        if (
            not isinstance(names, list)
            or not names
            or not all(isinstance(name, str) and name in offered for name in names)
        ):
            return None
        return {"names": names}, False

    def take(self, tool: str, args: dict[str, Any]) -> None:
        """Put those in force that the model activated; call it once the answers of a turn are there."""
        if tool == _WIRE_ACTIVATE:
            for name in args["names"]:  # as the job took them up, not as they are said to be now
                self._pins[name] = msgspec.structs.replace(self._pins[name], offered=False)
            in_force().own = self.skilled

    def _names(self, *, offered: bool) -> list[SkillPin]:
        return [pin for pin in self._pins.values() if pin.offered is offered]


async def taken_up(run: Run, names: Sequence[str]) -> AgentSkills:
    """Take up skills for an agent: those of its job, or the named ones. Raises RunError for one that cannot be used."""
    if not names:
        return AgentSkills(pins_of(run.created))
    outcome = await run.attempt(ACTIVATE, {"names": list(dict.fromkeys(names))})
    if outcome.code is Code.UNKNOWN_TOOL:
        reason, remedy = f"no skills are known here, nor {names[0]}", "Say something in [skills] of remit.toml."
        raise RunError(reason, code=Code.SKILL_NOT_FOUND, remedy=remedy)
    if not outcome.ok:
        raise CallError(outcome, ACTIVATE, "")
    return AgentSkills(msgspec.convert(outcome.value["skills"], list[SkillPin]))


def _line(pin: SkillPin) -> str:
    return f"- {pin.name}: {' '.join(pin.description.split())}"


def _catalog(head: str, pins: list[SkillPin]) -> str:
    return "\n".join((head, *map(_line, pins)))


def _one_of(pins: list[SkillPin]) -> dict[str, Any]:
    return {"type": "string", "enum": [pin.name for pin in pins]}


def _schema(properties: dict[str, Any], required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}


def _loose(tool: str) -> str:
    return tool if {"*", "?"} & {*tool} else f"{tool[:-1]}[{tool[-1]}]"
