"""The port to the gate for a provider that runs a program which asks for something while a call is under way."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Passage(NamedTuple):
    """The outcome of a call through the door."""

    ok: bool
    value: Any = None
    code: str = ""
    """Empty if ok."""
    reason: str = ""


class Door(Protocol):
    """Makes calls of tools through the gate (rule 1), in a session of their own."""

    async def open(self, principal: str, client: str) -> str:
        """Open a session in which calls are recorded; its identifier. `client` is the program. Raise JournalError."""
        ...

    async def call(self, session: str, tool: str, args: dict[str, Any]) -> Passage:
        """Call a tool, and wait for the person whom the gate asks, if it asks one. Raise JournalError."""
        ...
