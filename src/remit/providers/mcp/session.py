"""A conversation with one server, in the era that was agreed on: plain JSON objects both ways, as they came.

The SDK's session has a model for each of them, which drops what it does not know, and takes half a second to import.
Failures of the transport or the server become the gateway's words by one table (contract: tools).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from remit.codes import Code
from remit.errors import ProviderError
from remit.jsonrpc.message import CANCELLED, REPAIRED
from remit.jsonrpc.protocol import (
    BATCHES_VERSION,
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    SUBSCRIPTION_ID_META_KEY,
    TASKS,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
    MCPError,
    MethodNotFoundError,
    SessionGoneError,
    UnansweredError,
    header_value,
    is_modern,
)
from remit.tools.peer import CAPABILITY, is_foreign
from remit.tools.remote import MCP_ERROR
from remit.version import __version__

if TYPE_CHECKING:
    from remit.jsonrpc.dispatcher import Dispatcher
    from remit.jsonrpc.inbound import CallOptions, Inbound
    from remit.providers.mcp.answers import ServerAnswers
    from remit.tools.peer import Peer

Heard = Callable[[str, Mapping[str, Any]], None]
"""Is told method and params of what a server tells everyone."""
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

TASKED: Final = frozenset({"tools/call", "tasks/get", "tasks/update", "tasks/cancel"})
"""Requests that a server answers with a task, or about one."""
_RECORDED: Final = TASKED | {"tasks/result"}
"""Requests whose result is that of a call."""
_log: Final = logging.getLogger("remit.mcp")
_DISCOVER_S: Final = 10.0
_MAX_ROUNDS: Final = 10
"""Times a server may ask something back before it answers a request."""
_TO_EVERYBODY: Final = frozenset(
    {
        TOOLS_CHANGED,
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The member that HTTP repeats in a header, by method (2026-07-28)."""
_LISTENS: Final = "listen-"
"""Begins the ids of requests that last; the others are numbers."""
_US: Final = {"name": "remit", "version": __version__}
_CHANGES: Final = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


class _Program(msgspec.Struct):
    name: str
    version: str


class _Greeting(msgspec.Struct, rename="camel"):
    """The least that the answer to `initialize` has to say."""

    protocol_version: str


class _Discovery(msgspec.Struct, rename="camel"):
    """The least that the answer to `server/discover` has to say."""

    supported_versions: list[str]


class McpSession:
    """A client's side of it.

    It answers what the server asks with `answers`, and tells `listener` of what it tells everyone. The server is told
    of the capabilities `declared`.
    """

    def __init__(
        self, dispatcher: Dispatcher, answers: ServerAnswers, listener: Heard, declared: Mapping[str, Any]
    ) -> None:
        self._dispatcher = dispatcher
        self._answers = answers
        self._listener = listener
        self._declared = declared
        self._subscriptions: dict[str, Callable[[], None] | None] = {}
        self._numbers = count(1)
        self.offers = frozenset(method for method, name in CAPABILITY.items() if name in declared)
        """The requests that the server was told it may make."""
        self.protocol_version = ""
        """Empty before the handshake."""
        self.introduction: Mapping[str, Any] = MappingProxyType({})
        """The server's answer to the handshake, as it came."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Hear the server within the block."""
        self._dispatcher.start(self._asked, self._told)
        try:
            yield self
        finally:
            await self._dispatcher.stop()

    async def initialize(self) -> None:
        """Shake hands, as before 2026-07-28. Raises MCPError, ValidationError or RuntimeError.

        A server that refuses our version is spoken to in the latest of those that it says it knows.
        """
        params = {"protocolVersion": HANDSHAKE_VERSIONS[-1], "capabilities": self._declared, "clientInfo": _US}
        try:
            result = await self._dispatcher.send_raw_request("initialize", params)
        except MCPError as error:
            known = [each for each in HANDSHAKE_VERSIONS if each in _supported(error)]
            if not known:
                raise
            result = await self._dispatcher.send_raw_request("initialize", {**params, "protocolVersion": known[-1]})
        version = msgspec.convert(result, _Greeting).protocol_version
        if version not in HANDSHAKE_VERSIONS:
            raise RuntimeError(f"Unsupported protocol version from the server: {version}")
        self.introduction, self.protocol_version = result, version
        self._dispatcher.batches = version == BATCHES_VERSION
        await self.tell("notifications/initialized")

    async def discover(self) -> None:
        """Ask who the server is, as since 2026-07-28. Raises MCPError, ValidationError or RuntimeError."""
        version = MODERN_VERSIONS[-1]
        opts: CallOptions = {"timeout": _DISCOVER_S, "cancel_on_abandon": False}
        try:
            result = await self._ask("server/discover", {}, opts, version)
        except MCPError as error:
            if error.code != UNSUPPORTED_PROTOCOL_VERSION or version not in _supported(error):
                raise  # else it is asked once more
            result = await self._ask("server/discover", {}, opts, version)
        supported = msgspec.convert(result, _Discovery).supported_versions
        if version not in supported:
            raise RuntimeError(f"Unsupported protocol versions of the server: {supported}")
        meta = result.get("_meta")
        info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
        self.introduction = {**({"serverInfo": info} if info is not None else {}), **result}
        self.protocol_version = version

    async def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something, such as that the client's roots changed."""
        await self._dispatcher.notify(method, params, {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.protocol_version}})

    @property
    def capabilities(self) -> dict[str, Any]:
        """Return what the server declared; empty before the handshake."""
        declared = self.introduction.get("capabilities")
        declared = declared if isinstance(declared, Mapping) else {}
        return {name: value for name, value in declared.items() if value is not None}

    @property
    def server(self) -> tuple[str, str]:
        """Return the server's name and version; empty where it does not say them."""
        try:
            info = msgspec.convert(self.introduction.get("serverInfo"), _Program)
        except msgspec.ValidationError:
            return "", ""
        return info.name, info.version

    async def ask(
        self, method: str, params: Mapping[str, Any], opts: CallOptions | None = None, peer: Peer | None = None
    ) -> dict[str, Any]:
        """The raw result of a request, made under the name of `peer`. Raises MCPError."""
        return await self._ask(method, params, opts or {}, self.protocol_version, peer)

    async def settle(
        self,
        method: str,
        params: Mapping[str, Any],
        answers: ServerAnswers,
        peer: Peer | None,
        *,
        headers: Mapping[str, str] | None = None,
        progress: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """The final result of a request; what the server asks back on the way is answered. Raises MCPError.

        `headers` go beside it over HTTP; `progress` is told what the server reports.
        """
        opts: CallOptions = {} if headers is None else {"headers": dict(headers)}
        if progress is not None:
            opts["on_progress"] = _reporting(progress)
        extra: dict[str, Any] = {}
        with answers.calling(peer):
            for _ in range(_MAX_ROUNDS):
                result = await self.ask(method, {**params, **extra}, opts, peer)
                if result.get("resultType") != "input_required":
                    return result
                questions = result.get("inputRequests")
                extra = {"inputResponses": await answers.all(questions if isinstance(questions, dict) else {}, peer)}
                if (state := result.get("requestState")) is not None:
                    extra["requestState"] = state
        raise UnansweredError(Code.BadGateway, f"it asked back more than {_MAX_ROUNDS} times")

    async def listen(self, begun: Callable[[], None] | None) -> None:
        """Have the server tell of changes until it stops; `begun` is called once it does (2026-07-28).

        Raises MCPError for a server that does not tell.
        """
        name = f"{_LISTENS}{next(self._numbers)}"
        self._subscriptions[name] = begun
        try:
            await self.ask("subscriptions/listen", {"notifications": _CHANGES}, {"request_id": name})
        except MCPError as error:
            if name in self._subscriptions:
                raise
            _log.debug("the server stopped telling of changes: %s", error)
        finally:
            self._subscriptions.pop(name, None)

    # --- common

    async def _ask(
        self, method: str, params: Mapping[str, Any], opts: CallOptions, version: str, peer: Peer | None = None
    ) -> dict[str, Any]:
        """The raw result of a request in the envelope of a version. Raises MCPError."""
        body, headers = dict(params), dict(opts.get("headers", {}))
        if version:
            headers[MCP_PROTOCOL_VERSION_HEADER] = version
        if is_modern(version):
            body["_meta"] = self._envelope(method, body.get("_meta", {}), version, peer)
            headers[MCP_METHOD_HEADER] = method
            if isinstance(name := body.get(_NAMED_BY.get(method, "")), str):
                headers[MCP_NAME_HEADER] = header_value(name)
        result = await self._dispatcher.send_raw_request(method, body, {**opts, "headers": headers})
        if method not in _RECORDED and isinstance(meta := result.get("_meta"), dict):
            meta.pop(REPAIRED, None)  # no record takes it, and it is between us
        return result

    def _envelope(self, method: str, attached: Mapping[str, Any], version: str, peer: Peer | None) -> dict[str, Any]:
        """The words of a request about itself and its client, the `peer` if it is made for one (2026-07-28)."""
        passed = peer.meta if peer is not None else {}
        theirs = passed.get(CLIENT_CAPABILITIES_META_KEY)
        declared = self._answers.allowed(theirs) if isinstance(theirs, Mapping) else self._declared
        if method in TASKED:  # whose answer may be a task: we follow it to its end, for any caller
            declared = {**declared, "extensions": {**(declared.get("extensions") or {}), TASKS: {}}}
        own = {PROTOCOL_VERSION_META_KEY: version, CLIENT_INFO_META_KEY: _US}
        return {**attached, **own, **passed, CLIENT_CAPABILITIES_META_KEY: declared}

    # --- what the server asks and tells

    async def _asked(self, _context: Inbound, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        modern = is_modern(self.protocol_version)
        if method == "ping" and not modern:
            return {}
        if not modern and is_foreign(method):
            return await self._answers.own(method, dict(params or {}))
        if modern or method not in CAPABILITY:
            raise MethodNotFoundError(method)
        if method not in self.offers:
            raise MCPError(code=INVALID_REQUEST, message=f"{method} is not supported")
        return await self._answers.one(method, dict(params or {}))

    async def _told(self, _context: Inbound, method: str, params: Mapping[str, Any] | None) -> None:
        params = params or {}
        if method == "notifications/message":
            self._answers.logged(params)
        elif method in _TO_EVERYBODY or is_foreign(method):
            self._listener(method, params)
        elif method == "notifications/subscriptions/acknowledged":
            meta = params.get("_meta")
            name = meta.get(SUBSCRIPTION_ID_META_KEY) if isinstance(meta, Mapping) else None
            if (begun := self._subscriptions.pop(str(name), None)) is not None:
                begun()
        elif method == CANCELLED and str(params.get("requestId")).startswith(_LISTENS):
            error = UnansweredError(Code.ConnectionError, "the server ended it")
            self._dispatcher.fail(str(params["requestId"]), error)


def _supported(refusal: MCPError) -> list[Any]:
    """The versions that a server which refused ours says it knows."""
    listed = refusal.data.get("supported") if isinstance(refusal.data, dict) else None
    return listed if isinstance(listed, list) else []


def _reporting(progress: Callable[[Mapping[str, Any]], None]) -> Any:
    async def reported(params: Mapping[str, Any]) -> None:
        progress(params)

    return reported


_CAUSES: Final = {
    METHOD_NOT_FOUND: Code.ToolNotFound,
    INVALID_PARAMS: Code.InvalidInput,
    URL_ELICITATION_REQUIRED: Code.AuthError,
}
_GONE: Final = ("session not found", "session terminated", "session has been terminated", "unknown session")
"""The words in which a server on HTTP says that it does not know our session any more."""


def translated(error: Exception, server: str) -> ProviderError:
    """The provider's error for whatever a call raised."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, MCPError):
        return _answered(error, f"{server}: {error.message}")
    if isinstance(error, TimeoutError):
        return ProviderError(f"{server}: no answer in time", cause=Code.Timeout)
    if _of_the_network(error):
        return ProviderError(f"{server}: {type(error).__name__}: {error}", cause=Code.NetworkError)
    return ProviderError(f"{server}: {type(error).__name__}: {error}", cause=Code.BadGateway)


def _answered(error: MCPError, reason: str) -> ProviderError:
    """Return what an error of JSON-RPC means: the server's own goes to its client as it came."""
    if isinstance(error, UnansweredError):
        return ProviderError(reason, cause=error.cause)
    if _forgotten(error):
        return ProviderError(reason, cause=Code.ConnectionError)
    return ProviderError(reason, cause=_CAUSES.get(error.code), detail={MCP_ERROR: error.told})


def lost(error: Exception) -> str | None:
    """Say why the connection is of no use any more, where this error says so; a request that failed alone does not."""
    if isinstance(error, MCPError):
        return error.message if _forgotten(error) else None
    return str(error) or type(error).__name__ if _of_the_network(error) else None


def _forgotten(error: MCPError) -> bool:
    if isinstance(error, UnansweredError):
        return isinstance(error, SessionGoneError)
    return error.code == INVALID_REQUEST and any(words in error.message.lower() for words in _GONE)


def _of_the_network(error: Exception) -> bool:
    return isinstance(error, OSError) or type(error).__module__.startswith(("aiohttp", "anyio"))
