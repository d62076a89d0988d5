"""The port to the gate for a provider that runs a program which asks for something while a call is under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from remit.journal.event import Blob
    from remit.journal.kinds import Payload


class DoorOutcome(msgspec.Struct, frozen=True):
    """The outcome of a call through the door."""

    ok: bool
    value: Any = None
    code: str = ""
    """Empty if ok."""
    reason: str = ""


class ToolDoor(Protocol):
    """Makes calls of tools through the gate (rule 1), in a session of their own."""

    async def open(self, principal: str, client: str) -> str:
        """Open a session in which calls are recorded; its identifier. `client` is the program. Raise JournalError."""
        ...

    async def call(self, session: str, tool: str, args: dict[str, Any]) -> DoorOutcome:
        """Call a tool, and wait for the person whom the gate asks, if it asks one. Raise JournalError."""
        ...

    async def decided(self, confirmation: str) -> bool:
        """Wait until a question is answered, or is not asked any more. Raise NotFoundError or JournalError."""
        ...


class Inside(Protocol):
    """Records what a program does that a call runs: in the caller's stream, at places below the call's own."""

    @property
    def stream(self) -> str:
        """Return the stream that it is recorded in."""
        ...

    def place(self, name: str) -> str:
        """Return a place below the call's, such as `2/1`: no place of a recipe, so that a replay passes it by."""
        ...

    async def ask(self, request: Any, watch: Any) -> Any:
        """Ask a model through the gate: ModelRequest and Watch in, an Outcome out. Raise JournalError."""
        ...

    async def record(self, *payloads: Payload, blobs: Sequence[Blob] = ()) -> None:
        """Append events, before whatever is made durable next. Raise JournalError."""
        ...
