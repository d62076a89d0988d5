"""The steps of a TOOL ticket: where they come from, and the one form they are brought into. Pure.

Read in this order: `metadata.tool_input.tool_steps`, then the older `tool_steps` of the ticket itself, then none.
A step of the oldest form, {server, tool, args}, becomes {tool_name: server, args}; its `tool` stays in the trace only.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from remit.codes import Code
from remit.errors import UsageError

MAX_STEPS: Final = 100
"""Steps of one ticket."""
_FIELDS: Final = frozenset({"tool_name", "args", "budget", "save_as"})
_LEGACY_FIELDS: Final = frozenset({"server", "tool", "args", "budget", "save_as"})
_REMEDY: Final = "A step is {tool_name, args, budget, save_as}; tool_name is a tool's key, without a dot."


class StepBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a step may use; at least 1 each."""

    max_steps: int | None = None
    """The number of times that its call may be made, the first time and retries together."""
    max_wall_ms: int | None = None


class ToolStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call that a ticket asks for."""

    tool_name: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    budget: StepBudget | None = None
    save_as: str = ""
    original_tool: str = msgspec.field(default="", name="_original_tool")
    """`tool` of a step in the oldest form: for the trace, never for the allowlist and never among the arguments."""


class TicketSteps(NamedTuple):
    """The steps of a ticket as they were given, and where they stood."""

    steps: Any
    canonical_missing: bool
    """`tool_input.tool_steps` is absent."""
    legacy: bool
    """They stand in the older place."""


def found_in(tool_input: Any, legacy: Any = msgspec.UNSET) -> TicketSteps:
    """The steps of a ticket as they were given, from the first place that has any."""
    canonical = tool_input.get("tool_steps") if isinstance(tool_input, dict) else None
    if canonical is not None:
        return TicketSteps(canonical, canonical_missing=False, legacy=False)
    if legacy is msgspec.UNSET or legacy is None:
        return TicketSteps((), canonical_missing=True, legacy=False)
    return TicketSteps(legacy, canonical_missing=True, legacy=True)


def steps_of(tool_input: Any, legacy: Any = msgspec.UNSET) -> tuple[ToolStep, ...]:
    """Every step of a ticket in the one form. Raise UsageError (INVALID_TOOL_STEP, INVALID_BUDGET) for a bad step."""
    return _normalised(found_in(tool_input, legacy).steps)


def normalised(step: Any, number: int = 0) -> ToolStep:
    """One step in the one form; `number` is named in errors. Raise UsageError as `steps_of` does."""
    if not isinstance(step, dict):
        raise _invalid(number, f"is {_kind(step)}, not an object")
    legacy = "tool_name" not in step and "server" in step
    unknown = sorted(set(map(str, step)) - (_LEGACY_FIELDS if legacy else _FIELDS))
    if unknown:
        raise _invalid(number, f"has unknown fields: {', '.join(unknown)[:200]}")
    name = step.get("server") if legacy else step.get("tool_name")
    if not isinstance(name, str) or not name:
        raise _invalid(number, "has no tool_name")
    if "." in name:
        raise _invalid(number, f"has a dot in its tool_name: {name[:200]!r}")
    args = step.get("args")
    if args is not None and not isinstance(args, dict):
        raise _invalid(number, f"has args that are {_kind(args)}, not an object")
    save_as = step.get("save_as") or ""
    if not isinstance(save_as, str):
        raise _invalid(number, f"has a save_as that is {_kind(save_as)}, not text")
    original = step.get("tool") if legacy else None
    return ToolStep(
        tool_name=name,
        args=args or {},
        budget=_budget(step.get("budget"), number),
        save_as=save_as,
        original_tool=original if isinstance(original, str) else "",
    )


def written(step: ToolStep) -> dict[str, Any]:
    """A step as JSON that `normalised` reads back."""
    document: dict[str, Any] = msgspec.to_builtins(step)
    original = document.pop("_original_tool", None)
    if original is None:
        return document
    return {"server": document.pop("tool_name"), "tool": original, **document}


def _normalised(steps: Any) -> tuple[ToolStep, ...]:
    if not isinstance(steps, list | tuple):
        raise UsageError(f"tool_steps is {_kind(steps)}, not a list", code=Code.INVALID_TOOL_STEP, remedy=_REMEDY)
    if len(steps) > MAX_STEPS:
        reason = f"the ticket has {len(steps)} steps; {MAX_STEPS} are allowed"
        raise UsageError(reason, code=Code.INVALID_TOOL_STEP, remedy="Split it into several tickets.")
    return tuple(normalised(step, number) for number, step in enumerate(steps))


def _budget(raw: Any, number: int) -> StepBudget | None:
    if raw is None:
        return None
    try:
        budget = msgspec.convert(raw, StepBudget)
    except msgspec.ValidationError as error:
        raise _budget_error(number, str(error)) from error
    for name, value in (("max_steps", budget.max_steps), ("max_wall_ms", budget.max_wall_ms)):
        if value is not None and value < 1:
            raise _budget_error(number, f"{name} is {value}; it must be at least 1")
    return budget


def _invalid(number: int, reason: str) -> UsageError:
    return UsageError(f"step {number} {reason}", code=Code.INVALID_TOOL_STEP, remedy=_REMEDY)


def _budget_error(number: int, reason: str) -> UsageError:
    remedy = "A budget is {max_steps, max_wall_ms}, whole numbers from 1."
    return UsageError(f"step {number}: {reason}", code=Code.INVALID_BUDGET, remedy=remedy)


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
