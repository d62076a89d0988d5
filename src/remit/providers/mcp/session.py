"""The SDK's client session, asked for answers as they came: its models drop what they do not know."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    SubscriptionLost,
    ToolsListChanged,
    listen,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from remit.jsonrpc.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    SERVER_INFO_META_KEY,
    TASKS,
    MCPError,
    is_modern,
)
from remit.tools.peer import CAPABILITY, ELICIT, ROOTS, SAMPLE
from remit.version import __version__

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext, IncomingMessage
    from mcp.shared.dispatcher import CallOptions

    from remit.jsonrpc.dispatcher import Dispatcher
    from remit.providers.mcp.answers import Answers
    from remit.tools.peer import Peer

Heard = Callable[[str, Mapping[str, Any]], None]
"""Is told method and params of what a server tells everyone."""
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

TASKED: Final = frozenset({"tools/call", "tasks/get", "tasks/update", "tasks/cancel"})
"""Requests that a server answers with a task, or about one."""
_log: Final = logging.getLogger("remit.mcp")
_MAX_ROUNDS: Final = 10
"""Times a server may ask something back before it answers a request."""
_TO_EVERYBODY: Final = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
    types.ResourceUpdatedNotification,
)
_METHODS: Final[Mapping[type[ServerEvent], str]] = {
    ToolsListChanged: TOOLS_CHANGED,
    PromptsListChanged: "notifications/prompts/list_changed",
    ResourcesListChanged: "notifications/resources/list_changed",
}


class Session(ClientSession):
    """A client session that also takes and gives plain JSON objects, in whatever era was agreed on."""

    @classmethod
    def over(cls, dispatcher: Dispatcher, answers: Answers, heard: Heard, declared: Mapping[str, Any]) -> Self:
        """A session that answers what the server asks, and tells `heard` of what it tells everyone.

        It declares the capabilities `declared`.
        """

        async def received(message: IncomingMessage) -> None:
            if isinstance(message, _TO_EVERYBODY):
                plain = _plain(message)
                heard(plain["method"], plain.get("params", {}))

        async def logged(params: types.LoggingMessageNotificationParams) -> None:
            answers.logged(_plain(params))

        async def elicited(
            context: ClientRequestContext,  # noqa: ARG001 - the SDK's signature
            params: types.ElicitRequestParams,
        ) -> types.ElicitResult:
            return types.ElicitResult.model_validate(await answers.one(ELICIT, _plain(params)))

        async def sampled(
            context: ClientRequestContext,  # noqa: ARG001 - the SDK's signature
            params: types.CreateMessageRequestParams,
        ) -> types.CreateMessageResult:
            return types.CreateMessageResult.model_validate(await answers.one(SAMPLE, _plain(params)))

        async def rooted(context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG001 - the SDK's signature
            return types.ListRootsResult.model_validate(await answers.one(ROOTS, {}))

        offers = frozenset(method for method, name in CAPABILITY.items() if name in declared)
        session = cls(
            dispatcher=dispatcher,
            client_info=types.Implementation(name="remit", version=__version__),
            message_handler=received,
            logging_callback=logged,
            elicitation_callback=elicited if ELICIT in offers else None,
            sampling_callback=sampled if SAMPLE in offers else None,
            list_roots_callback=rooted if ROOTS in offers else None,
        )
        session.offers, session._declared, session._answers = offers, declared, answers
        return session

    offers: frozenset[str] = frozenset()
    """The requests that the server was told it may make."""
    _declared: Mapping[str, Any] = MappingProxyType({})
    _answers: Answers

    def _build_capabilities(self, version: str) -> types.ClientCapabilities:  # noqa: ARG002 - the SDK's signature
        """The SDK's, by what is declared instead of by what is answered."""
        return types.ClientCapabilities.model_validate(self._declared)

    introduction: Mapping[str, Any] = MappingProxyType({})
    """The server's answer to the handshake, as it came."""

    async def initialize(self) -> types.InitializeResult:
        """The SDK's handshake, with the answer kept as it came. Raises MCPError, ValidationError or RuntimeError."""
        params = types.InitializeRequestParams(
            protocol_version=LATEST_HANDSHAKE_VERSION,
            capabilities=self._build_capabilities(LATEST_HANDSHAKE_VERSION),
            client_info=self._client_info,
        )
        self.introduction = await self._dispatcher.send_raw_request("initialize", _plain(params))
        result = types.InitializeResult.model_validate(self.introduction, by_name=False)
        if result.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise RuntimeError(f"Unsupported protocol version from the server: {result.protocol_version}")
        self.adopt(result)
        await self.send_notification(types.InitializedNotification())
        return result

    async def send_discover(self, version: str) -> dict[str, Any]:
        """The SDK's probe, with the answer kept as it came. Raises MCPError."""
        raw = await super().send_discover(version)
        meta = raw.get("_meta")
        info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
        self.introduction = {**({"serverInfo": info} if info is not None else {}), **raw}
        return raw

    async def roots_changed(self) -> None:
        """Tell a server of before 2026-07-28 that the client's roots changed."""
        await self.send_notification(types.RootsListChangedNotification())

    @property
    def capabilities(self) -> dict[str, Any]:
        """Return what the server declared; empty before the handshake."""
        return _plain(self.server_capabilities) if self.server_capabilities else {}

    async def ask(
        self, method: str, params: Mapping[str, Any], opts: CallOptions | None = None, peer: Peer | None = None
    ) -> dict[str, Any]:
        """The raw result of a request, made under the name of `peer`. Raises MCPError."""
        body, opts = dict(params), {} if opts is None else opts
        self._stamp({"method": method, "params": body}, opts)  # the SDK offers no other way to the era's envelope
        if peer is not None and is_modern(self.protocol_version):
            body["_meta"] = {**body.get("_meta", {}), **peer.meta}
            declared = peer.meta.get(CLIENT_CAPABILITIES_META_KEY)
            if isinstance(declared, Mapping):
                body["_meta"][CLIENT_CAPABILITIES_META_KEY] = self._answers.allowed(declared)
        if method in TASKED and is_modern(self.protocol_version):
            body["_meta"] = _with_tasks(body["_meta"])
        return await self._dispatcher.send_raw_request(method, body, opts)

    async def settle(
        self,
        method: str,
        params: Mapping[str, Any],
        answers: Answers,
        peer: Peer | None,
        *,
        headers: Mapping[str, str] | None = None,
        progress: Callable[[float, float | None, str], None] | None = None,
    ) -> dict[str, Any]:
        """The final result of a request; what the server asks back on the way is answered. Raises MCPError.

        `headers` go beside it over HTTP; `progress` is told what the server reports.
        """
        opts: CallOptions = {} if headers is None else {"headers": dict(headers)}
        if progress is not None:
            opts["on_progress"] = _reporting(progress)
        given: dict[str, Any] = {}
        with answers.calling(peer):
            for _ in range(_MAX_ROUNDS):
                result = await self.ask(method, {**params, **given}, {**opts}, peer)
                if result.get("resultType") != "input_required":
                    return result
                asked = result.get("inputRequests")
                given = {"inputResponses": await answers.all(asked if isinstance(asked, dict) else {}, peer)}
                if (state := result.get("requestState")) is not None:
                    given["requestState"] = state
        raise MCPError(code=INTERNAL_ERROR, message=f"it asked back more than {_MAX_ROUNDS} times")

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[str]]:
        """The methods of the changes that the server tells; a stream that breaks ends the block. Raises MCPError."""
        try:
            async with listen(
                self, tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as subscription:
                yield (_METHODS[type(event)] async for event in subscription)
        except SubscriptionLost as error:
            _log.debug("%s", error)


def _reporting(progress: Callable[[float, float | None, str], None]) -> Any:
    async def reported(done: float, total: float | None, message: str | None) -> None:
        progress(done, total, message or "")

    return reported


def _with_tasks(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope of a request whose answer may be a task: we follow it to its end, for any caller."""
    declared = meta.get(CLIENT_CAPABILITIES_META_KEY) or {}
    extensions = {**(declared.get("extensions") or {}), TASKS: {}}
    return {**meta, CLIENT_CAPABILITIES_META_KEY: {**declared, "extensions": extensions}}


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain
