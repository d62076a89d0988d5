"""The skills that a job is under: what they let its calls do, and the port to what knows the skills of this process.

A job takes skills up when it is created, an agent within it when it begins. What they are is recorded then
(`SkillPin`), and from then on the record alone counts: a skill that changes, or goes, changes nothing for what is under
way, except that the difference is reported. Skills only restrict: their tools are the only ones that may be called, and
their rules deny or ask. A branch of a run may be under fewer skills than its job, never under more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, StateError
from remit.jobs.routes import LackingError, route_of
from remit.journal.kinds import ErrorInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remit.journal.event import Blob
    from remit.journal.kinds import JobCreated, SkillPin
    from remit.policy.overlay import Overlay

AGENT: Final = "agent"
"""The recipe of agents."""
READ: Final = "skill.read"
"""The tool that reads a file of a skill; every skill lets an agent call it."""
ACTIVATE: Final = "skill.activate"
"""The tool by which an agent comes under a skill."""
_ALWAYS: Final = (READ, ACTIVATE, "model.*")
"""Tools that skills never forbid: they allow nothing by themselves. Which models may be asked is for the policy."""


class Skilled:
    """Skills in force."""

    def __init__(self, pins: Iterable[SkillPin]) -> None:
        self.pins: Final = tuple(pins)
        self.digests: Final = {pin.name: pin.digest for pin in self.pins if not pin.offered}
        """The digest of each skill that is active, as its steps record it."""
        self.overlays: Final = overlays_of(self.pins) if self.pins else ()
        self.sandbox: Final = tuple(layer for pin in self.pins if not pin.offered for layer in pin.sandbox)
        """The limits that they set the sandbox."""


def pins_of(created: JobCreated | None) -> tuple[SkillPin, ...]:
    """Return the skills that a job is under, as it took them up."""
    return created.skills if created is not None else ()


def overlays_of(pins: Sequence[SkillPin]) -> tuple[Overlay, ...]:
    """Return what skills add to the policy: one list of tools, and the rules of each. Raises PolicyError."""
    from remit.policy.overlay import parse_overlay  # noqa: PLC0415 - rules are slow to load, and few jobs have skills

    tools = [tool for pin in pins for tool in pin.tools]
    listed = parse_overlay("skill", (), sorted({*tools, *_ALWAYS}))
    active = [pin for pin in pins if pin.rules and not pin.offered]
    return (listed, *(parse_overlay(f"skill:{pin.name}", pin.rules) for pin in active))


class InForce:
    """The skills of a branch, beside those of what it is a branch of; they may become others while it runs."""

    def __init__(self, own: Skilled, above: InForce | None = None) -> None:
        self.own = own
        self._above = above

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        """Return what all of them add to the policy."""
        return (*self._above.overlays, *self.own.overlays) if self._above is not None else self.own.overlays

    @property
    def sandbox(self) -> tuple[dict[str, Any], ...]:
        """Return what all of them leave of the sandbox."""
        return (*self._above.sandbox, *self.own.sandbox) if self._above is not None else self.own.sandbox

    @property
    def digests(self) -> dict[str, str]:
        """Return the active skills that are nearest."""
        return self.own.digests or (self._above.digests if self._above is not None else {})


NONE_IN_FORCE: Final = InForce(Skilled(()))
"""The skills of a branch that is under none but those of its job."""
_in_force: Final[ContextVar[InForce]] = ContextVar("skills in force", default=NONE_IN_FORCE)


in_force: Final[Callable[[], InForce]] = _in_force.get
"""Return the skills that this branch of a run is under, beside those of its job."""


@contextmanager
def under(skills: Skilled) -> Iterator[InForce]:
    """Put what runs within, and the branches that it begins, under skills too."""
    branch = InForce(skills, _in_force.get())
    token = _in_force.set(branch)
    try:
        yield branch
    finally:
        _in_force.reset(token)


class SkillAdmission(msgspec.Struct, frozen=True):
    """The skills of a new job."""

    pins: tuple[SkillPin, ...] = ()
    blobs: tuple[Blob, ...] = ()
    """Texts of the skills."""


class Skills(Protocol):
    """The skills of this process."""

    async def admit(self, run_types: Sequence[str], named: Sequence[str]) -> SkillAdmission:
        """Take up the `named` skills for a new job that runs recipes of these names.

        Raises StateError if no enabled skill allows one of them (SKILL_DISABLED), or if a named one cannot be used
        (SKILL_DISABLED, SKILL_UNAVAILABLE), and NotFoundError (SKILL_NOT_FOUND).
        """
        ...

    async def digests(self, names: Sequence[str]) -> dict[str, str]:
        """Return the digests of skills as they are now; a skill that is gone has none."""
        ...

    holds: bool
    """Whether a job may ever not go on because a skill of it was switched off: else `held` is not asked."""

    async def held(self, created: JobCreated) -> str:
        """Return why a job may not go on for now: a skill of it was switched off; empty: it may."""
        ...

    async def files(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return the files of skills by path, `NAME/SKILL.md` first of each. Raises as `admit` does for `named`."""
        ...


async def require_on(skills: Skills, created: JobCreated | None) -> None:
    """Raise LackingError if a job may begin nothing new for now: a skill of it is switched off."""
    reason = await skills.held(created) if created is not None else ""
    if created is not None and reason:
        remedy = "It goes on once the skill is switched on (remit skills enable NAME). Or cancel it."
        raise LackingError(reason, route=route_of(created), code=Code.SKILL_DISABLED, remedy=remedy)


async def refusal(skills: Skills, admitted: frozenset[str], run_type: str) -> ErrorInfo | None:
    """Return why a recipe may not begin within a job: no enabled skill allows it; None: it may.

    Those that were `admitted` when the job was created are not looked at again.
    """
    try:
        await skills.admit([run_type] if run_type not in admitted else [], ())
    except StateError as error:
        return ErrorInfo(code=error.code.name, message=error.message, remedy=error.remedy)
    return None


class NoSkills:
    """Knows none: every job may be created, and none is under skills."""

    holds = False

    async def admit(self, run_types: Sequence[str], named: Sequence[str]) -> SkillAdmission:  # noqa: ARG002 - the port's
        _none_of(named)
        return SkillAdmission()

    async def digests(self, names: Sequence[str]) -> dict[str, str]:  # noqa: ARG002 - the port's
        return {}

    async def held(self, created: JobCreated) -> str:  # noqa: ARG002 - the port's
        return ""

    async def files(self, names: Sequence[str]) -> dict[str, bytes]:
        _none_of(names)
        return {}


NO_SKILLS: Final = NoSkills()


def _none_of(named: Sequence[str]) -> None:
    if named:
        remedy = "Run it where the part `skills` is."
        raise NotFoundError(f"this Remit has no skill {named[0]}", code=Code.SKILL_NOT_FOUND, remedy=remedy)
