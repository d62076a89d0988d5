"""Answers of the SDK's server: in a conversation that began with a handshake, or to a request by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.runner import ServerRunner, aclose_shielded, serve_one
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request

from remit.jsonrpc.protocol import MCPError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from remit.jsonrpc.dispatcher import Dispatcher, OnNotify
    from remit.jsonrpc.inbound import Answer, Inbound


class Answering:
    """A server that is ready to answer."""

    def __init__(self, server: Server[Any], lifespan: Any) -> None:
        """`lifespan` is what the server keeps while it runs."""
        self._server = server
        self._lifespan = lifespan

    def converse(self, dispatcher: Dispatcher, session_id: str | None = None) -> Conversation:
        """Begin a conversation over `dispatcher`."""
        connection = Connection.for_loop(dispatcher, session_id=session_id)
        return Conversation(ServerRunner(self._server, connection, self._lifespan), connection)

    async def answer(
        self,
        envelope: Envelope,
        context: Inbound,
        method: str,
        params: Mapping[str, Any] | None,
        told: Dispatcher | None = None,
    ) -> dict[str, Any]:
        """The result of a request that stands for itself; what belongs to none goes to `told`. Raises MCPError."""
        outbound = {} if told is None else {"outbound": NotifyOnlyOutbound(told)}
        one = Connection.from_envelope(envelope.version, envelope.client, envelope.capabilities, **outbound)
        return await serve_one(self._server, context, method, params, connection=one, lifespan_state=self._lifespan)


@asynccontextmanager
async def answering(server: Server[Any]) -> AsyncIterator[Answering]:
    """The server, ready within the block."""
    async with server.lifespan(server) as lifespan:
        yield Answering(server, lifespan)


class Conversation:
    """One with a client, from the handshake on (before 2026-07-28)."""

    def __init__(self, runner: ServerRunner[Any], connection: Connection) -> None:
        """Give `runner` what the client sends."""
        self.on_request: Answer = runner.on_request
        self.on_notify: OnNotify = runner.on_notify
        self._connection = connection

    async def close(self) -> None:
        """Let go of what was kept for it."""
        await aclose_shielded(self._connection)


class Envelope(NamedTuple):
    """The envelope of a request (2026-07-28 and later)."""

    version: str
    client: Any
    """As it was sent: nothing of it has been checked."""
    capabilities: Any
    """The same."""

    @classmethod
    def of(cls, message: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Self:
        """Read it; over HTTP, the headers have to say the same. Raises MCPError."""
        route = classify_inbound_request(message, headers=headers)
        if isinstance(route, InboundLadderRejection):
            raise MCPError(code=route.code, message=route.message, data=route.data)
        return cls(route.protocol_version, route.client_info, route.client_capabilities)
