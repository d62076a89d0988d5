"""The events of the guard."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import Payload


class HooksCallUngated(Payload, frozen=True, kw_only=True):
    """An agent reported a call that it made without leave."""

    KIND: ClassVar[str] = "hooks_call_ungated"
    agent: str
    tool_name: str
    why: Literal["not_asked", "refused"]
    """`not_asked`: no hook asked before it; `refused`: the gate had refused it."""
    call_id: str = ""
    """The call in the model's answer, as the agent says it."""
    arguments_hash: str = ""
    """Digest of its arguments, as `tool_invocation_started` would have it."""
