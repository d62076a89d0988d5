"""Clients as they introduce themselves: once, in a handshake, or with each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from remit.jsonrpc.protocol import (
    BATCHES_VERSION,
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    MCPError,
)
from remit.mcp_server.request import ClientConnection, ClientProgram, ClientRequest

if TYPE_CHECKING:
    from remit.jsonrpc.dispatcher import Dispatcher
    from remit.jsonrpc.inbound import Inbound
    from remit.mcp_server.server import ToolServer


class _Capabilities(msgspec.Struct):
    """Those that have to be objects; what else a client declares is its own."""

    roots: dict[str, Any] | None = None
    sampling: dict[str, Any] | None = None
    elicitation: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None


class _Hello(msgspec.Struct, rename="camel"):
    """The parameters of `initialize`."""

    protocol_version: str
    client_info: ClientProgram
    capabilities: _Capabilities


class ClientConversation:
    """One with a client, from the handshake on (before 2026-07-28)."""

    def __init__(self, face: ToolServer, dispatcher: Dispatcher) -> None:
        self._face, self._dispatcher = face, dispatcher
        self._connection = ClientConnection(dispatcher)
        self._version = HANDSHAKE_VERSIONS[-1]
        self._program: ClientProgram | None = None
        self._declared: Mapping[str, Any] = {}

    async def on_request(self, inbound: Inbound, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """The result of a request. Raises MCPError."""
        params = params or {}
        version, program, declared = self._version, self._program, self._declared
        if method == "initialize":
            version, program, declared = _hello(params)
        request = ClientRequest(method, params, version, inbound, program, declared, self._connection)
        answer = await self._face.answer(request)
        if method == "initialize":
            self._version, self._program, self._declared = version, program, declared
            self._dispatcher.batches = version == BATCHES_VERSION
        return answer

    async def on_notify(self, _inbound: Inbound, method: str, params: Mapping[str, Any] | None) -> None:
        """Tell the client of changes, once it is ready for that."""
        if method == "notifications/initialized":
            self._face.changes.join(self._connection)
        else:
            await self._face.notified(method, params or {})

    def close(self) -> None:
        """Let go of what was kept for it."""
        self._connection.end()


def _hello(params: Mapping[str, Any]) -> tuple[str, ClientProgram, Mapping[str, Any]]:
    """The version that is spoken from now on, the program and its capabilities. Raises MCPError."""
    try:
        hello = msgspec.convert(params, _Hello)
    except msgspec.ValidationError as error:
        raise MCPError(INVALID_PARAMS, f"Invalid request parameters: {error}") from None
    version = hello.protocol_version if hello.protocol_version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return version, hello.client_info, params["capabilities"]


class RequestEnvelope(NamedTuple):
    """The envelope of a request (2026-07-28 and later)."""

    version: str
    client: Any
    """As it was sent: nothing of it has been checked."""
    capabilities: Any
    """The same."""

    @classmethod
    def of(cls, params: Mapping[str, Any] | None) -> Self:
        """Read it. Raises MCPError."""
        meta = (params or {}).get("_meta")
        keys = PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY
        missing = [key for key in keys if key not in meta] if isinstance(meta, Mapping) else keys
        if missing or not isinstance(meta, Mapping):
            raise MCPError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
        version = meta[PROTOCOL_VERSION_META_KEY]
        if not isinstance(version, str):
            raise MCPError(INVALID_PARAMS, f"{PROTOCOL_VERSION_META_KEY} has to be text")
        if version not in MODERN_VERSIONS:
            data = {"supported": list(MODERN_VERSIONS), "requested": version}
            raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
        return cls(version, meta.get(CLIENT_INFO_META_KEY), meta[CLIENT_CAPABILITIES_META_KEY])

    def request(self, inbound: Inbound, method: str, params: Mapping[str, Any] | None) -> ClientRequest:
        """Return the request that it envelops."""
        declared = self.capabilities if isinstance(self.capabilities, Mapping) else {}
        try:
            program = msgspec.convert(self.client, ClientProgram)
        except msgspec.ValidationError:
            program = None
        return ClientRequest(method, params or {}, self.version, inbound, program, declared, None)
