"""A client's request, as everything above the SDK sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec

from remit.http.access import OPERATOR
from remit.jsonrpc.protocol import TASKS, TASKS_VERSION, is_modern
from remit.mcp_server.client import Caller

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.shared.dispatcher import DispatchContext

_TURN: Final = "x-codex-turn-metadata"
"""Key of `_meta` under which Codex describes the turn that makes a call."""
_ASKED: Final = ("elicitation", "roots", "sampling")
"""Capabilities of clients that answer requests of ours."""


class Program(NamedTuple):
    """A client as it describes itself."""

    name: str = ""
    version: str = ""


class ClientRequest(NamedTuple):
    """One request, and the ways back to who made it."""

    method: str
    params: Mapping[str, Any]
    version: str
    """Of the protocol."""
    caller: Caller
    """The caller that made it, as far as its transport knows."""
    program: Program | None
    """None before the handshake."""
    declared: Any
    """The capabilities that the client declared, as the SDK read them."""
    capabilities: frozenset[str]
    """The capabilities that the client declared that it can be asked, such as `sampling`."""
    dialogs: frozenset[str]
    """The kinds of questions to its person that it shows: `form`, and `url` for a page that it opens."""
    takes_tasks: bool
    """Whether it can be answered with a task at any time (2026-07-28)."""
    channel: DispatchContext[Any]
    """Takes what belongs to this request: raw messages, which the SDK's models would change."""
    connection: Connection
    """Takes what belongs to no request."""

    @classmethod
    def of(cls, ctx: ServerRequestContext[Any, Any]) -> Self:
        """Return what the SDK's context holds; of its session, more than the SDK shows."""
        session, params = ctx.session, ctx.params
        info = session.client_params.client_info if session.client_params else None
        declared = session.client_capabilities
        return cls(
            method=ctx.method,
            params=params if isinstance(params, Mapping) else {},
            version=ctx.protocol_version,
            caller=ctx.request if isinstance(ctx.request, Caller) else Caller(OPERATOR, None),
            program=Program(info.name, info.version) if info else None,
            declared=declared,
            capabilities=frozenset(each for each in _ASKED if getattr(declared, each, None) is not None),
            dialogs=_dialogs_of(getattr(declared, "elicitation", None)),
            takes_tasks=is_modern(ctx.protocol_version) and TASKS in (getattr(declared, "extensions", None) or {}),
            channel=session._request_outbound,  # noqa: SLF001 - the SDK has no other way from a handler to its request
            connection=session._connection,  # noqa: SLF001 - and none to its connection
        )

    @property
    def unattended(self) -> bool:
        """Whether its program says that no person is there, as `codex exec` does."""
        meta = self.params.get("_meta")
        turn = meta.get(_TURN) if isinstance(meta, Mapping) else None
        if isinstance(turn, str):
            try:
                turn = msgspec.json.decode(turn)
            except msgspec.DecodeError:
                return False
        return isinstance(turn, Mapping) and turn.get("turn_trigger") == "exec"

    @property
    def wants_task(self) -> bool:
        """Whether its client asks to be answered with a task (2025-11-25)."""
        return self.version == TASKS_VERSION and isinstance(self.params.get("task"), Mapping)

    @property
    def modern(self) -> bool:
        """Whether it stands for itself, without a session (2026-07-28)."""
        return is_modern(self.version)


def _dialogs_of(elicitation: Any) -> frozenset[str]:
    """The modes of a declared capability; one that names none shows forms."""
    named = frozenset(mode for mode in ("form", "url") if getattr(elicitation, mode, None) is not None)
    return named or frozenset({"form"} if elicitation is not None else ())
