"""Events about limits that rules set. All of these are ours."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import Payload


class LimitTaken(Payload, frozen=True, kw_only=True):
    """Ours, in the stream of a rule's limit: a call takes its part before it is announced."""

    KIND: ClassVar[str] = "limit_taken"
    rule_id: str
    intent: str
    """The idempotency key of the call: whatever becomes of it, it is counted once."""
    tool_name: str
    principal: str = ""
    stream: str = ""
    """Where the call is recorded."""
    step: str = ""
    amount: str = "0"
    """What it adds to the sum, as a decimal number."""
