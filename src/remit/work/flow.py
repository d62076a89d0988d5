"""The rules of the flow: what state an issue is in after a result, and what comes next. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.work.comment import BodyStatus
from remit.work.result import WorkResult

MAX_RETRIES: Final = 2
"""Runs that may fail one after another before the issue is blocked."""


class Step(NamedTuple):
    """Where an issue goes after a result."""

    state: BodyStatus
    next: str
    """The next step, and the one who takes it, in words."""


def step_after(result: WorkResult, failures: int) -> Step:
    """Return where an issue goes; `failures` counts the runs before this one that failed, one after another."""
    lacking = ", ".join(result.missing())
    match result.status:
        case "ok" if lacking:
            return Step("blocked", f"Add what the result lacks: {lacking}.")
        case "ok":
            return Step("review", "Review the change, then decide.")
        case "blocked":
            return Step("blocked", f"Resolve {', '.join(result.blocked_by) or 'what blocks it'}, then unblock.")
        case "fail" if failures >= MAX_RETRIES:
            return Step("blocked", f"{failures + 1} runs failed: change the order or the executor.")
        case "fail":
            return Step("doing", "Run it again, or switch the executor.")
