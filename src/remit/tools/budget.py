"""The budget of calls: how many of them, and how long each may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from remit.codes import Code
from remit.errors import UsageError

KEYS: Final = ("max_steps", "max_calls", "max_wall_ms")


class ToolBudget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of a tool, a job or a call; of several the smallest counts (rule 8)."""

    max_steps: int | None = None
    """Calls of any tool that one job or session may make."""
    max_calls: int | None = None
    """Calls of the same tool that one job or session may make."""
    max_wall_ms: int | None = None
    """Milliseconds that a call may take."""


def parse_budget(raw: Mapping[str, object] | None) -> ToolBudget | None:
    """A budget from its table; None if there is none. Raises UsageError (INVALID_BUDGET)."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise _invalid(f"a budget is a table, not {type(raw).__name__}")
    for key, value in raw.items():
        if key not in KEYS:
            raise _invalid(f"a budget has no key {key!r:.60}")
        if type(value) is not int or value < 1:
            raise _invalid(f"{key} is {value!r:.60}, not a whole number from 1")
    return msgspec.convert(raw, ToolBudget)


def tighter(budget: ToolBudget | None, other: ToolBudget | None) -> ToolBudget | None:
    """The smaller of each limit."""
    if budget is None or other is None:
        return budget or other
    return ToolBudget(
        max_steps=_least(budget.max_steps, other.max_steps),
        max_calls=_least(budget.max_calls, other.max_calls),
        max_wall_ms=_least(budget.max_wall_ms, other.max_wall_ms),
    )


def _least(limit: int | None, other: int | None) -> int | None:
    return min((each for each in (limit, other) if each is not None), default=None)


def _invalid(reason: str) -> UsageError:
    return UsageError(reason, code=Code.INVALID_BUDGET, remedy=f"A budget may hold {', '.join(KEYS)}.")
