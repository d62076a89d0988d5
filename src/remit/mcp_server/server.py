"""The protocol's side: the SDK's server, whose requests for tools are answered here.

They are answered in the place of a middleware: there the SDK leaves results as they are, while its models would drop
what they do not know of a tool's definition, and refuse what a newer server may say.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.http.access import Access
from remit.jsonrpc.protocol import INVALID_PARAMS, SERVER_INFO_META_KEY, MCPError
from remit.mcp_server import views as viewing
from remit.mcp_server.calls import Asker, Calls
from remit.mcp_server.changes import Changes
from remit.mcp_server.client import Client, Terms
from remit.mcp_server.conversation import Answering, answering
from remit.mcp_server.definition import for_older
from remit.mcp_server.listening import Listening
from remit.mcp_server.parking import Parking
from remit.mcp_server.peers import ClientPeer, Parked
from remit.mcp_server.reply import reply_of
from remit.mcp_server.request import ClientRequest, Program
from remit.mcp_server.search import CALL, SEARCH, Named, Search, refusal, reply_with
from remit.mcp_server.task_handles import METHODS, TaskHandles, announced, begun, created, ttl_of
from remit.mcp_server.views import Viewer, Views
from remit.tools.remote import MCP_ERROR, task_support
from remit.version import __version__

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from remit.http.access import Identity
    from remit.mcp_server.names import Names
    from remit.mcp_server.relay import Look, Relay
    from remit.mcp_server.relays import Relays
    from remit.service.service import Service

_KEY_BYTES: Final = 32
_MAX_CLIENTS: Final = 10_000
_MAX_OF_ONE: Final = 1_000
"""Clients of one principal: the name of its program, which it chooses, makes another one."""
_INSTRUCTIONS: Final = (
    "Every call is checked against the operator's policy and recorded. A call that needs a person's approval is "
    "answered with CONFIRMATION_REQUIRED and does not run. Do something else meanwhile; once you are told that "
    "it is approved, make the same call again, and it runs."
)

_Answer = Callable[[ClientRequest], Awaitable[dict[str, Any]]]


class UnknownToolError(MCPError):
    """A call names a tool that there is not."""


class _Server(Server[Any]):
    """Says to every client that lists may change."""

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


class ToolServer:
    """One server towards any number of clients."""

    def __init__(
        self,
        service: Service,
        names: Names,
        *,
        principal: str,
        transport: str,
        relay: Relay | Relays | None = None,
        confirm: str = "remit confirm",
        terms: Terms = Terms(),  # noqa: B008 - a value
        clock: Clock = SystemClock(),  # noqa: B008 - without a state
    ) -> None:
        """Offer what `names` shows; `principal` is the caller if the transport does not know better.

        What `relay` passes on is offered beside the tools. `confirm` is the command that decides on calls that wait;
        `terms` are those of clients whose tables say nothing else.
        """
        self._service = service
        self._principal = principal
        self._transport = transport
        self._relay = relay
        self._confirm = confirm
        self._terms = terms
        self._calls = Calls(service)
        self._clients: dict[tuple[str | Identity | None, ...], Client] = {}
        self._tasks = TaskHandles(clock)
        self._parking = Parking(self._tasks)
        self._views = Views(service.tools, names)
        self.changes = Changes(self._views)
        if relay is not None:
            relay.subscribe(self.changes)
        self.server: Server[Any] = _Server(
            "remit",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_subscriptions_listen=Listening(self.changes.listening, self._tasks, self._who),
        )
        # All are answered in `_serve`; named here, they count as capabilities.
        for method in ("tools/list", "tools/call", *(relay.methods if relay is not None else ())):
            self.server.add_request_handler(method, types.RequestParams, _never)
        security = RequestStateSecurity(
            keys=[os.urandom(_KEY_BYTES)], bind_principal=lambda ctx: self._who(ClientRequest.of(ctx))
        )
        boundary = RequestStateBoundary(security, default_audience="remit")
        self.server.middleware[:] = [boundary, self._serve]
        self._unwatch = service.tools.watch(self._changed)

    def answering(self) -> AbstractAsyncContextManager[Answering]:
        """Be ready to answer within the block."""
        return answering(self.server)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return what a tool takes, where that is known by now."""
        return self._views.schema(name)

    async def close(self) -> None:
        """Tell no client of changes any more; calls that wait for answers are given up."""
        self._unwatch()
        await self.changes.close()
        await self._parking.close()
        await self._tasks.close()
        await self._calls.close()

    def close_streams(self) -> None:
        """End the streams that clients of 2026-07-28 listen to."""
        self.changes.listening.close()

    def _changed(self) -> None:
        self._views.forget()
        if self._relay is not None:
            self._relay.renew()
        self.changes.changed()

    # --- requests

    async def _serve(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        match ctx.method:
            case "tools/call":
                return await self._answered(ctx, self._called)
            case "tools/list":
                return await self._answered(ctx, self._listed)
            case "initialize" | "server/discover":
                return await self._introduced(ClientRequest.of(ctx), await call_next(ctx))
            case method if method in METHODS:
                return await self._answered(ctx, self._asked_about)
            case "notifications/initialized":
                self.changes.join(ClientRequest.of(ctx).connection)
            case method if self._relay is not None and method in self._relay.methods:
                return await self._answered(ctx, self._relayed)
            case _:
                pass
        return await call_next(ctx)

    async def _introduced(self, request: ClientRequest, said: HandlerResult) -> HandlerResult:
        """The answer to a handshake; where a server is wrapped, it is the one that introduces itself."""
        if not isinstance(said, dict):
            return said
        introduced = said if self._relay is None else await self._relay.introduce(said, self._look(request))
        return announced(introduced, request.method, wrapped=self._relay is not None and self._relay.wraps)

    async def _answered(self, ctx: ServerRequestContext[Any, Any], answer: _Answer) -> dict[str, Any]:
        """The result with what every result of its era says. Raises MCPError while the handshake is still due."""
        request = ClientRequest.of(ctx)
        if request.program is None and not request.modern:
            raise MCPError(code=INVALID_PARAMS, message="initialize comes first")
        result = await answer(request)
        if not request.modern:
            return result
        info = self._relay.info if self._relay is not None else None
        who = info or {"name": "remit", "version": __version__}
        meta = {**result.get("_meta", {}), SERVER_INFO_META_KEY: who}
        return {"resultType": "complete", **result, "_meta": meta}

    async def _listed(self, request: ClientRequest) -> dict[str, Any]:
        viewer = self._viewer(request)
        view = await self._views.of(viewer, viewing.PATIENCE_S)
        self.changes.given(viewer, view, None if request.modern else request.connection)
        if request.modern:
            return {"tools": list(view.definitions), "ttlMs": 0, "cacheScope": "private"}
        return {"tools": [for_older(each) for each in view.definitions]}

    async def _called(self, request: ClientRequest) -> dict[str, Any]:
        name, args = _asked_for(request.params)
        client, viewer, access = self._client(request), self._viewer(request), request.caller.access
        found = viewer.listed is not None and name == CALL
        try:
            if viewer.listed is not None and name == SEARCH:
                search = msgspec.convert(args, Search)
                return reply_with(await self._views.best(viewer, search.query, search.limit, viewing.PATIENCE_S))
            if found:
                named = msgspec.convert(args, Named)
                name, args = named.name, named.arguments
        except msgspec.ValidationError as error:
            return refusal(Code.INVALID_TOOL_ARGS, f"{name}: {error}", "Correct them by the tool's input schema.")

        def work(peer: ClientPeer | Parked) -> Coroutine[Any, Any, dict[str, Any]]:
            return self._call(client, viewer, name, args, peer, access)

        try:
            if request.wants_task and await self._allows_task(viewer, name):
                parked = Parked(ClientPeer(request), takes_tasks=True)
                handle = self._tasks.take(begun(work(parked), parked), self._who(request), ttl_of(request.params))
                return created(handle, self._tasks, modern=False)
            return await self._parking.talk(request, work, self._who(request))
        except UnknownToolError:
            if not found:
                raise
            return refusal(Code.UNKNOWN_TOOL, f"there is no tool {name[:100]}", f"Find its name with {SEARCH}.")

    async def _relayed(self, request: ClientRequest) -> dict[str, Any]:
        client, relay = self._client(request), self._relay
        if relay is None:
            msg = "nothing is relayed"
            raise AssertionError(msg)
        changes, connection, uri = self.changes, request.connection, str(request.params.get("uri"))
        if request.method == "resources/unsubscribe" and changes.unfollow(connection, uri):
            return {}  # others still follow it
        if request.method == "resources/subscribe":
            changes.follow(connection, uri)  # now: a server may tell of it at once
        look = self._look(request)
        try:
            return await self._parking.talk(
                request, lambda peer: relay.answer(client, request, peer, look), self._who(request)
            )
        except MCPError:
            if request.method == "resources/subscribe":
                changes.unfollow(connection, uri)
            raise

    def _look(self, request: ClientRequest) -> Look:
        """Finds out which servers a client sees."""
        return partial(self._views.seen, self._viewer(request))

    async def _asked_about(self, request: ClientRequest) -> dict[str, Any]:
        peer = ClientPeer(request)
        try:
            return await self._tasks.answer(request, self._who(request), peer)
        finally:
            await peer.told()

    async def _allows_task(self, viewer: Viewer, name: str) -> bool:
        """Whether a tool's definition lets clients of 2025-11-25 ask for a task."""
        tool = await self._service.tools.known(await self._views.full(viewer, name))
        return tool is not None and task_support(tool.definition) != "forbidden"

    async def _call(
        self,
        client: Client,
        viewer: Viewer,
        name: str,
        args: dict[str, Any],
        peer: ClientPeer | Parked,
        access: Access,
    ) -> dict[str, Any]:
        tool = await self._views.full(viewer, name)
        known = await self._service.tools.known(tool)  # a call may change what its server offers
        progress, terms = Progress(peer), self._terms.of(access, client.name)
        asker = Asker(client, peer, access, terms, progress.waits)
        outcome = await self._calls.make(asker, tool, args, progress=progress)
        await progress.end()
        if outcome.code == Code.UNKNOWN_TOOL.name:
            why = {"code": outcome.code, "reason": outcome.reason, "remedy": outcome.remedy}
            raise UnknownToolError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:100]}", data=why)
        told = outcome.detail.get(MCP_ERROR) if isinstance(outcome.detail, dict) else None
        if isinstance(told, dict):
            raise MCPError(code=told["code"], message=told["message"], data=told.get("data"))
        known = known or await self._service.tools.known(tool)
        given = peer.results.get(outcome.invocation_id)
        streams, confirm = self._service.streams, self._confirm
        return await reply_of(outcome, streams, known, confirm, waiting=terms.waiting, given=given)

    # --- who

    def _who(self, request: ClientRequest) -> str:
        """The principal of a request: its token's, or the process's."""
        return request.caller.access.principal or self._principal

    def _viewer(self, request: ClientRequest) -> Viewer:
        access = request.caller.access
        return Viewer(self._who(request), access.tools, self._terms.listed(access))

    def _client(self, request: ClientRequest) -> Client:
        """The caller's session: of the connection, or of the program if each request stands for itself."""
        principal, program = self._who(request), request.program or Program()
        # Since 2026-07-28 there are no sessions on the wire: a session in the header is unchecked.
        session = None if request.modern else request.caller.session
        identity = request.caller.access.identity
        key = (principal, identity, session) if session else (principal, identity, *program)
        client = self._clients.pop(key, None)
        if client is None:
            own = [other for other in self._clients if other[0] == principal]
            if len(own) >= _MAX_OF_ONE:
                del self._clients[own[0]]
            client = Client(
                self._service.sessions,
                principal=principal,
                name=program.name,
                version=program.version,
                transport=self._transport,
                identity=identity,
            )
        self._clients[key] = client  # last used, last in the order
        if len(self._clients) > _MAX_CLIENTS:
            del self._clients[next(iter(self._clients))]
        return client


def _asked_for(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call."""
    name, args = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not isinstance(args, dict | None):
        raise MCPError(code=INVALID_PARAMS, message="a call has a name, and arguments by name")
    return name, args or {}


async def _never(_ctx: object, params: types.RequestParams) -> dict[str, Any]:
    msg = f"a request of ours reached the SDK: {params}"
    raise AssertionError(msg)


_log: Final = logging.getLogger("remit.mcp")


_STEP: Final = 0.001


class Progress:
    """Passes progress on to the client that asked for it, in order."""

    def __init__(self, peer: ClientPeer | Parked) -> None:
        """Tell `peer`."""
        self._peer = peer
        self._reports: list[tuple[float, float | None, str]] = []
        self._sender: asyncio.Task[None] | None = None
        self._ended = False
        self._waited = 0.0

    def waits(self, message: str) -> None:
        """Report that the call waits, in steps so small that what the tool reports afterwards is more."""
        self._waited += _STEP
        self(self._waited, None, message)

    def __call__(self, done: float | None, total: float | None, message: str) -> None:
        """Report; the client may be slow, the tool does not wait for it."""
        if done is None or self._ended:
            return
        done = max(done, self._waited)
        self._reports.append((done, total, str(message)))  # a line of output is a string of its own kind
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def end(self) -> None:
        """Wait until the client has all of it, and take no more: nothing may come after the answer."""
        self._ended = True
        if self._sender is not None:
            await self._sender

    async def _send(self) -> None:
        while self._reports:
            done, total, message = self._reports.pop(0)
            try:
                await self._peer.report(done, total, message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                _log.debug("progress was not passed on: %r", error)
