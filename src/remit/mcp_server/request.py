"""A client's request, as everything that answers it sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.http.access import OPERATOR
from remit.jsonrpc.message import REPAIRED
from remit.jsonrpc.protocol import TASKS, TASKS_VERSION, is_modern
from remit.mcp_server.client import HttpCaller

if TYPE_CHECKING:
    from remit.jsonrpc.dispatcher import Dispatcher
    from remit.jsonrpc.inbound import Inbound

_TURN: Final = "x-codex-turn-metadata"
"""Key of `_meta` under which Codex describes the turn that makes a call."""


class ClientProgram(msgspec.Struct, frozen=True):
    """A client as it describes itself."""

    name: str
    version: str


class ClientConnection:
    """A client's connection (before 2026-07-28), which takes what belongs to no request."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.notify = dispatcher.notify
        self._endings: list[Callable[[], None]] = []

    def at_end(self, ending: Callable[[], None]) -> None:
        """Have `ending` called once it is over."""
        self._endings.append(ending)

    def end(self) -> None:
        """Let go of what was kept for it."""
        while self._endings:
            self._endings.pop()()


class ClientRequest(NamedTuple):
    """One request, and the ways back to who made it."""

    method: str
    params: Mapping[str, Any]
    version: str
    """Of the protocol."""
    channel: Inbound
    """Takes what belongs to this request."""
    program: ClientProgram | None
    """None before the handshake."""
    declared: Mapping[str, Any]
    """The capabilities that the client declared, as it wrote them."""
    connection: ClientConnection | None
    """Takes what belongs to no request; None where each stands for itself."""

    @property
    def caller(self) -> HttpCaller:
        """Return who made it, as far as the transport knows."""
        return self.channel.caller if isinstance(self.channel.caller, HttpCaller) else HttpCaller(OPERATOR, None)

    @property
    def dialogs(self) -> frozenset[str]:
        """The kinds of questions to its person that it shows: `form`, and `url` for a page that it opens."""
        elicitation = self.declared.get("elicitation")
        if not isinstance(elicitation, Mapping):
            return frozenset()
        named = frozenset(mode for mode in ("form", "url") if elicitation.get(mode) is not None)
        return named or frozenset({"form"})

    @property
    def takes_tasks(self) -> bool:
        """Return whether it can be answered with a task at any time (2026-07-28)."""
        extensions = self.declared.get("extensions")
        return self.modern and isinstance(extensions, Mapping) and TASKS in extensions

    def can(self, capability: str) -> bool:
        """Return whether the client declared that it can be asked this, such as `sampling`."""
        return isinstance(self.declared.get(capability), Mapping)

    @property
    def unattended(self) -> bool:
        """Return whether its program says that no person is there, as `codex exec` does."""
        meta = self.params.get("_meta")
        turn = meta.get(_TURN) if isinstance(meta, Mapping) else None
        if isinstance(turn, str):
            try:
                turn = msgspec.json.decode(turn)
            except msgspec.DecodeError:
                return False
        return isinstance(turn, Mapping) and turn.get("turn_trigger") == "exec"

    @property
    def repaired(self) -> Mapping[str, int]:
        """Return what our reader repaired in its parameters."""
        meta = self.params.get("_meta")
        repaired: Mapping[str, int] = meta.get(REPAIRED, {}) if isinstance(meta, Mapping) else {}
        return repaired

    @property
    def wants_task(self) -> bool:
        """Return whether its client asks to be answered with a task (2025-11-25)."""
        return self.version == TASKS_VERSION and isinstance(self.params.get("task"), Mapping)

    @property
    def modern(self) -> bool:
        """Return whether it stands for itself, without a session (2026-07-28)."""
        return is_modern(self.version)
