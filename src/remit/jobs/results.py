"""Results that the methods of a run return and raise, beside plain values."""

from __future__ import annotations

import msgspec

from remit.errors import RunError
from remit.gateway.outcome import Outcome


class CallError(RunError):
    """A call did not end well; `outcome` says how."""

    def __init__(self, outcome: Outcome, tool: str, step: str) -> None:
        self.outcome = outcome
        self.cause = outcome.cause
        self.tool = tool
        self.step = step
        super().__init__(outcome.reason, code=outcome.code, remedy=outcome.remedy)


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """A person's answer to a question."""

    approved: bool
    by: str = ""
    reason: str = ""


class Compensated(msgspec.Struct, frozen=True, kw_only=True):
    """What was undone."""

    undone: tuple[str, ...] = ()
    """Steps whose calls were undone, in that order."""
    left: tuple[str, ...] = ()
    """Steps that stay as they are, as a person decided."""
