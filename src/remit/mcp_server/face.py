"""The protocol's side: the SDK's server, whose requests for tools are answered here.

They are answered in the place of a middleware: there the SDK leaves results as they are, while its models would drop
what they do not know of a tool's definition, and refuse what a newer server may say.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from remit.codes import Code
from remit.http.access import ANYBODY, Access
from remit.ids import new_id
from remit.mcp_server.calls import Calls
from remit.mcp_server.client import Caller, Client
from remit.mcp_server.peers import ClientPeer, Parked
from remit.mcp_server.progress import Progress
from remit.mcp_server.reply import reply_of
from remit.mcp_server.view import View, view_of
from remit.tools.remote import MCP_ERROR
from remit.version import __version__

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from remit.mcp_server.names import Names
    from remit.mcp_server.relay import Relay
    from remit.wiring import Runtime

PATIENCE_S: Final = 10.0
"""Seconds a client waits for servers that are still connecting before it is shown what there is so far."""
PARKED_S: Final = 600.0
"""Seconds a call waits for its client to come again with what it was asked."""
_KEY_BYTES: Final = 32
_MAX_CLIENTS: Final = 10_000
_MAX_PARKED: Final = 1_000
_RESUMABLE: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may come again with answers: those whose state the SDK seals."""
_log: Final = logging.getLogger("remit.mcp")
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_INSTRUCTIONS: Final = (
    "Every call is checked against the operator's policy and recorded. A call that needs a person's approval is "
    "answered with CONFIRMATION_REQUIRED; once it is approved, make the same call again and it runs."
)


class _Server(Server[Any]):
    """Says that lists may change, whoever asks."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The SDK's, with changes announced."""
        options = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class Face:
    """One server towards any number of clients."""

    def __init__(
        self,
        runtime: Runtime,
        names: Names,
        *,
        principal: str,
        transport: str,
        relay: Relay | None = None,
        confirm: str = "remit confirm",
    ) -> None:
        """Offer what `names` shows; `principal` is who calls where the transport does not know better.

        What `relay` passes on is offered beside the tools. `confirm` is the command that decides on calls that wait.
        """
        self._runtime = runtime
        self._names = names
        self._principal = principal
        self._transport = transport
        self._relay = relay
        self._confirm = confirm
        self._calls = Calls(runtime.gateway, runtime.service.confirmations)
        self._clients: dict[tuple[str, ...], Client] = {}
        self._connections: dict[int, Connection] = {}
        self._views: dict[tuple[str, tuple[str, ...]], View] = {}
        self._generation = 0
        self._parked: dict[str, tuple[Parked, asyncio.TimerHandle]] = {}
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._changes: set[asyncio.Task[None]] = set()
        self.server: Server[Any] = _Server(
            "remit",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_subscriptions_listen=self._listening,
            get_tool_input_schema=self._schema,
        )
        # Both are answered in `_serve`; named here, they count as capabilities.
        self.server.add_request_handler("tools/list", types.PaginatedRequestParams, self._listed)
        self.server.add_request_handler("tools/call", types.CallToolRequestParams, self._called)
        if relay is not None:
            relay.register(self.server)
        security = RequestStateSecurity(keys=[os.urandom(_KEY_BYTES)], bind_principal=self._who)
        boundary = RequestStateBoundary(security, default_audience="remit")
        self.server.middleware[:] = [boundary, self._serve]
        self._unwatch = runtime.services.catalog.watch(self._changed)

    async def close(self) -> None:
        """Tell nobody of changes any more; calls that wait for answers are given up."""
        self._unwatch()
        for parked, timer in self._parked.values():
            timer.cancel()
            parked.give_up()
        ending = [*self._changes, *(parked.work for parked, _ in self._parked.values() if parked.work)]
        self._parked.clear()
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    def hush(self) -> None:
        """End the streams that clients of 2026-07-28 listen to."""
        self._listening.close()

    def heard(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on what a relayed server tells everybody; of tools, the catalog tells."""
        match method:
            case "notifications/prompts/list_changed":
                self._announce(method, {}, PromptsListChanged())
            case "notifications/resources/list_changed":
                self._announce(method, {}, ResourcesListChanged())
            case "notifications/resources/updated":
                self._announce(method, params, ResourceUpdated(uri=str(params.get("uri"))))
            case _:
                pass

    # --- requests

    async def _serve(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        match ctx.method:
            case "tools/call":
                return _whole(ctx, await self._called(_ready(ctx), ctx.params))
            case "tools/list":
                return _whole(ctx, await self._listed(_ready(ctx), ctx.params))
            case "notifications/initialized":
                self._joined(ctx)
            case method if self._relay is not None and method in self._relay:
                return _whole(ctx, await self._relayed(_ready(ctx), self._relay))
            case _:
                pass
        return await call_next(ctx)

    async def _listed(self, ctx: ServerRequestContext[Any, Any], _params: object) -> dict[str, Any]:
        view = await self._view(self._who(ctx), _caller(ctx).access.tools, PATIENCE_S)
        listed: dict[str, Any] = {"tools": list(view.definitions)}
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            listed |= {"ttlMs": 0, "cacheScope": "private"}
        return listed

    async def _called(self, ctx: ServerRequestContext[Any, Any], params: Any) -> dict[str, Any]:
        name, args = _asked_for(params)
        client, access = self._client(ctx), _caller(ctx).access
        return await self._talk(ctx, lambda peer: self._call(client, access, name, args, peer))

    async def _relayed(self, ctx: ServerRequestContext[Any, Any], relay: Relay) -> dict[str, Any]:
        client, params = self._client(ctx), ctx.params or {}
        return await self._talk(ctx, lambda peer: relay.answer(client, ctx.method, params, peer, ctx.protocol_version))

    async def _call(
        self, client: Client, access: Access, name: str, args: dict[str, Any], peer: ClientPeer | Parked
    ) -> dict[str, Any]:
        tool = await self._full(client.principal, access.tools, name)
        known = self._runtime.services.catalog.known(tool)  # a call may change what its server offers
        progress = Progress(peer)
        outcome = await self._calls.make(
            client, tool, args, progress=progress, peer=peer, decides=access.allows("decide")
        )
        await progress.end()
        if outcome.code is Code.UNKNOWN_TOOL:
            why = {"code": outcome.code.name, "reason": outcome.reason, "remedy": outcome.remedy}
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {name[:100]}", data=why)
        told = outcome.detail.get(MCP_ERROR) if isinstance(outcome.detail, dict) else None
        if isinstance(told, dict):
            raise MCPError(code=told["code"], message=told["message"], data=told.get("data"))
        known = known or self._runtime.services.catalog.known(tool)
        return await reply_of(outcome, self._runtime.journal, known, self._confirm)

    async def _full(self, principal: str, only: tuple[str, ...], shown: str) -> str:
        """The full name behind one that a client gave; a call that comes before its server is listed waits for it.

        Raises MCPError for a tool that the client's token does not cover: to this client it does not exist.
        """
        view = await self._view(principal, only, 0)
        if shown not in view.tools:
            await self._runtime.services.catalog.find(self._names.full(shown))
            view = await self._view(principal, only, 0)
        if only and shown not in view.tools:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {shown[:100]}")
        return view.tools.get(shown) or self._names.full(shown)

    # --- talking back

    async def _talk(
        self,
        ctx: ServerRequestContext[Any, Any],
        work: Callable[[ClientPeer | Parked], Coroutine[Any, Any, dict[str, Any]]],
    ) -> dict[str, Any]:
        """Do the work for a client that can be asked back meanwhile, each era in its way."""
        peer = ClientPeer(ctx)
        try:
            if not peer.modern or ctx.method not in _RESUMABLE:
                return await work(peer)
            return await self._step(self._resumed(ctx.params or {}, peer) or _begun(peer, work))
        finally:
            await peer.told()

    def _resumed(self, params: Mapping[str, Any], peer: ClientPeer) -> Parked | None:
        """The work that a repeated request goes on with; its state was sealed by us and for this very request.

        A state is good for once: a request that brings an old one is not taken for a new call, which might do
        what was done a second time.
        """
        state, responses = params.get("requestState"), params.get("inputResponses")
        if not isinstance(state, str):
            return None
        if state not in self._parked:
            raise MCPError(code=types.INVALID_PARAMS, message="this requestState was used, or given up: call anew")
        parked, timer = self._parked.pop(state)
        timer.cancel()
        parked.take(responses if isinstance(responses, Mapping) else {}, peer)
        return parked

    async def _step(self, parked: Parked) -> dict[str, Any]:
        """The result, or what the client has to find out before it comes again."""
        result = await parked.step()
        if result is not None:
            return result
        if len(self._parked) >= _MAX_PARKED:
            parked.give_up()
            raise MCPError(code=types.INTERNAL_ERROR, message="too many calls wait for answers")
        state = new_id("p")
        timer = asyncio.get_running_loop().call_later(PARKED_S, self._forget, state)
        self._parked[state] = parked, timer
        return {"resultType": "input_required", "inputRequests": dict(parked.questions), "requestState": state}

    def _forget(self, state: str) -> None:
        """Nobody came."""
        parked, _ = self._parked.pop(state)
        parked.give_up()

    # --- who

    def _who(self, ctx: ServerRequestContext[Any, Any]) -> str:
        """The principal of a request: its token's, or the process's."""
        return _caller(ctx).access.principal or self._principal

    def _client(self, ctx: ServerRequestContext[Any, Any]) -> Client:
        """The session of who calls: of the connection, or, where each request stands for itself, of the program."""
        principal = self._who(ctx)
        info = ctx.session.client_params.client_info if ctx.session.client_params else None
        name, version = (info.name, info.version) if info else ("", "")
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        # Since 2026-07-28 there are no sessions on the wire: whatever stands in the header was checked by nobody.
        session = None if modern else _caller(ctx).session
        key = (principal, session) if session else (principal, name, version)
        client = self._clients.pop(key, None)
        if client is None:
            client = Client(
                self._runtime.journal, principal=principal, name=name, version=version, transport=self._transport
            )
        self._clients[key] = client  # last used, last in the order
        if len(self._clients) > _MAX_CLIENTS:
            del self._clients[next(iter(self._clients))]
        return client

    async def _view(self, principal: str, only: tuple[str, ...], patience_s: float) -> View:
        """What a principal is offered; of servers that are still connecting, only what is known so far."""
        view = self._views.get((principal, only))
        if view is None:
            services, generation = self._runtime.services, self._generation
            tools = await services.catalog.tools(patience_s)
            view = view_of(tools, self._names, services.policy, principal, only)
            if not services.catalog.listing and generation == self._generation:
                self._views[principal, only] = view
        return view

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema behind a name, whoever sees it."""
        return next((schema for view in self._views.values() if (schema := view.schema(name))), None)

    # --- changes

    def _joined(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Tell this connection of changes, until it ends."""
        connection = ctx.session._connection  # noqa: SLF001 - the SDK has no other way from a handler to its connection
        self._connections[id(connection)] = connection
        connection.exit_stack.callback(self._connections.pop, id(connection), None)

    def _changed(self) -> None:
        """The catalog differs: forget what was made of it, and tell who wants to know."""
        self._views.clear()
        self._generation += 1
        self._announce(_TOOLS_CHANGED, {}, ToolsListChanged())

    def _announce(self, method: str, params: Mapping[str, Any], event: Any) -> None:
        async def tell() -> None:
            await self._bus.publish(event)
            await asyncio.gather(*(each.notify(method, params) for each in list(self._connections.values())))

        task = asyncio.create_task(tell())
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)


def _begun(peer: ClientPeer, work: Callable[[Parked], Coroutine[Any, Any, dict[str, Any]]]) -> Parked:
    parked = Parked(peer)
    parked.begin(work(parked))
    return parked


def _caller(ctx: ServerRequestContext[Any, Any]) -> Caller:
    """Who made the request, as far as its transport knows."""
    return ctx.request if isinstance(ctx.request, Caller) else Caller(ANYBODY, None)


def _ready(ctx: ServerRequestContext[Any, Any]) -> ServerRequestContext[Any, Any]:
    """The context, unless the handshake is still due."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and ctx.session.client_params is None:
        raise MCPError(code=types.INVALID_PARAMS, message="initialize comes first")
    return ctx


def _asked_for(params: Any) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call."""
    name = params.get("name") if isinstance(params, Mapping) else None
    args = params.get("arguments") if isinstance(params, Mapping) else None
    if not isinstance(name, str) or not isinstance(args, dict | None):
        raise MCPError(code=types.INVALID_PARAMS, message="a call has a name, and arguments by name")
    return name, args or {}


def _whole(ctx: ServerRequestContext[Any, Any], result: dict[str, Any]) -> dict[str, Any]:
    """The result with what every result of its era says."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return result
    meta = {**result.get("_meta", {}), types.SERVER_INFO_META_KEY: {"name": "remit", "version": __version__}}
    return {"resultType": "complete", **result, "_meta": meta}
