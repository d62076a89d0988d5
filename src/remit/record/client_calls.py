"""Calls of a model that no gate saw: what it wanted, beside the calls that clients brought to gates.

A client names its call by the identifier in the model's answer: hooks of Claude Code, Codex and opencode, and MCP
clients that send it. One that names none is joined by its tool, each call with one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.clock import DAY
from remit.journal.event import HeadQuery
from remit.journal.kinds import GateRefused, ToolInvocationStarted, decode
from remit.record.heads import CALL, PART, SESSION
from remit.regex import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.journal.event import Event
    from remit.journal.journal import Journal

_IDS: Final = ("call_id", "claudecode/toolUseId", "callId")
"""Names under which clients tell the identifier of a call: hooks, Claude Code and Codex over MCP."""
_MOST: Final = 200
"""Sessions, the newest, in which calls are looked for."""
_OLD: Final = 7 * DAY
"""The age that a session may have which a program continues."""
_OTHER: Final = regex(r"[^a-z0-9]+")


class ClientCalls:
    """The calls that clients brought to gates since a moment, read as they are recorded.

    `since` is in microseconds since the Unix epoch.
    """

    def __init__(self, journal: Journal, since: int) -> None:
        self._journal = journal
        self._since = since
        self._read_to: dict[str, int] = {}
        self._ids: set[str] = set()
        self._unnamed: list[str] = []
        """Tools of calls without an identifier, each until one that a model wanted is joined with it."""

    async def unseen(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return those of the wanted calls, tools by identifier, that no gate saw. Raise JournalError."""
        if wanted.keys() - self._ids:
            await self._read()
        return {call: tool for call, tool in wanted.items() if call not in self._ids and not self._is_joined(tool)}

    def _is_joined(self, tool: str) -> bool:
        plain = _plain(tool)
        own = next((own for own in self._unnamed if plain == own or plain.endswith(f"_{own}")), None)
        if own is None:
            return False
        self._unnamed.remove(own)
        return True

    async def _read(self) -> None:
        for kind in (SESSION, PART, CALL):
            for head in await self._journal.heads(HeadQuery(kind=kind, since=self._since - _OLD, limit=_MOST)):
                known = self._read_to.get(head.stream, 0)
                if head.seq > known and head.updated_at >= self._since:
                    for event in await self._journal.left(head.stream, known):
                        self._take(event)
                    self._read_to[head.stream] = head.seq

    def _take(self, event: Event) -> None:
        if event.at < self._since or event.kind not in {ToolInvocationStarted.KIND, GateRefused.KIND}:
            return
        payload = decode(event.kind, event.data)
        if not isinstance(payload, ToolInvocationStarted | GateRefused) or getattr(payload, "model_call", False):
            return
        call = next((payload.client[name] for name in _IDS if payload.client.get(name)), "")
        if call:
            self._ids.add(call)
        else:
            self._unnamed.append(_plain(payload.client.get("tool", "") or payload.tool_name))


def _plain(name: str) -> str:
    return _OTHER.sub("_", name.lower()).strip("_")
