"""The protocol's side: what clients ask is answered here, in both eras.

Results are passed on as they are. The SDK's server has models for them, which drop what they do not know of a tool's
definition, refuse what a newer server may say, and take half a second to import.

Calls that wait for their client to come again with what it was asked (2026-07-28).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.clock import Clock, SystemClock
from remit.codes import Code
from remit.http.access import Access
from remit.jsonrpc.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MODERN_VERSIONS,
    SERVER_INFO_META_KEY,
    MCPError,
    MethodNotFoundError,
)
from remit.mcp_server import offer as viewing
from remit.mcp_server.calls import CallAsker, McpCalls
from remit.mcp_server.changes import ListChanges
from remit.mcp_server.definition import for_older
from remit.mcp_server.offer import Viewer, Views
from remit.mcp_server.peers import ClientPeer, Parked
from remit.mcp_server.reply import reply_of
from remit.mcp_server.request import AskingTerms, ClientProgram, ClientRequest, McpCaller
from remit.mcp_server.search import CALL, SEARCH, ToolByName, ToolSearch, refusal, reply_with
from remit.mcp_server.subscriptions import ListenStreams
from remit.mcp_server.task_handles import METHODS, TaskHandles, announced, begun, created, ttl_of
from remit.tools.remote import MCP_ERROR, task_support
from remit.version import __version__

if TYPE_CHECKING:
    from remit.http.access import TokenIdentity
    from remit.mcp_server.offer import Names
    from remit.mcp_server.relay import Look, Relay
    from remit.mcp_server.relays import Relays
    from remit.service.service import Service


PARKED_S: Final = 600.0
"""Seconds a call waits for its client to come again with what it was asked."""
_MAX_PARKED: Final = 1_000
_MAX_PARKED_OF_ONE: Final = 100
"""Calls of one principal that wait, so that no one takes the places of all."""
_RESUMABLE: Final = {
    "tools/call": ("name", "arguments"),
    "prompts/get": ("name", "arguments"),
    "resources/read": ("uri",),
}
"""Requests that may come again with answers, with the members that they are then recognized by."""
_STATE_BYTES: Final = 24

Work = Callable[[ClientPeer | Parked], Coroutine[Any, Any, dict[str, Any]]]


class _Place(NamedTuple):
    """A call that waits."""

    parked: Parked
    timer: asyncio.TimerHandle
    request: tuple[Any, ...]
    """The request that may continue it."""


class Parking:
    """Work for clients that can be asked back, and what of it waits."""

    def __init__(self, tasks: TaskHandles) -> None:
        self._tasks = tasks
        self._parked: dict[str, _Place] = {}

    async def talk(self, request: ClientRequest, work: Work, owner: str) -> dict[str, Any]:
        """Do the work for a client that can be asked back meanwhile, each era in its way; `owner` is its principal."""
        peer = ClientPeer(request)
        try:
            if not request.modern or request.method not in _RESUMABLE:
                return await work(peer)
            return await self._step(self._resumed(request, peer, owner) or _begun(peer, work), owner)
        finally:
            await peer.told()

    async def close(self) -> None:
        """Give up what waits."""
        for place in self._parked.values():
            place.timer.cancel()
            place.parked.give_up()
        ending = [place.parked.work for place in self._parked.values() if place.parked.work]
        self._parked.clear()
        if ending:
            await asyncio.wait(ending)

    def _resumed(self, request: ClientRequest, peer: ClientPeer, owner: str) -> Parked | None:
        """The work that a repeated request continues with; its state cannot be guessed, and is for this very request.

        A state is good for once: a request that brings an old one is not taken for a new call, which might do
        what was done a second time.
        """
        state, responses = request.params.get("requestState"), request.params.get("inputResponses")
        if state is None:
            return None
        place = self._parked.get(state) if isinstance(state, str) else None
        if place is None or place.request != _recognized(request, owner):
            reason = "this requestState was used, or given up, or is of another request: call again"
            raise MCPError(code=INVALID_PARAMS, message=reason)
        del self._parked[state]
        place.timer.cancel()
        place.parked.take(responses if isinstance(responses, Mapping) else {}, peer)
        return place.parked

    async def _step(self, parked: Parked, owner: str) -> dict[str, Any]:
        """The result, or what the client has to find out before it comes again, or a task to ask about."""
        result = await parked.step()
        if result is not None:
            return result
        if parked.deferred:
            return created(self._tasks.take(parked, owner), self._tasks, modern=True)
        request = _recognized(parked.request, owner)
        own = sum(place.request[0] == owner for place in self._parked.values())
        if own >= _MAX_PARKED_OF_ONE or len(self._parked) >= _MAX_PARKED:
            parked.give_up()
            raise MCPError(code=INTERNAL_ERROR, message="too many calls wait for answers")
        state = os.urandom(_STATE_BYTES).hex()  # it must not be guessable
        timer = asyncio.get_running_loop().call_later(PARKED_S, self._forget, state)
        self._parked[state] = _Place(parked, timer, request)
        return {"resultType": "input_required", "inputRequests": dict(parked.questions), "requestState": state}

    def _forget(self, state: str) -> None:
        """The client did not come."""
        self._parked.pop(state).parked.give_up()


def _recognized(request: ClientRequest, owner: str) -> tuple[Any, ...]:
    """The parts that a request has to have in common with the one that it repeats."""
    members = _RESUMABLE[request.method]
    return owner, request.method, *(request.params.get(member) or None for member in members)


def _begun(peer: ClientPeer, work: Work) -> Parked:
    parked = Parked(peer, takes_tasks=peer.request.method == "tools/call" and peer.request.takes_tasks)
    parked.begin(work(parked))
    return parked


_US: Final = {"name": "remit", "version": __version__}
_TOOLS: Final = {"tools": {"listChanged": True}}
_RELAYED: Final = {
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
"""The capabilities of a server that passes on what others have."""
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


class ToolServer:
    """One server towards any number of clients.

    It offers what `names` shows; `principal` is the caller if the transport does not know better. What `relay` passes
    on is offered beside the tools. `confirm` is the command that decides on calls that wait; `terms` are those of
    clients whose tables say nothing else.
    """

    def __init__(
        self,
        service: Service,
        names: Names,
        *,
        principal: str,
        transport: str,
        relay: Relay | Relays | None = None,
        confirm: str = "remit confirm",
        terms: AskingTerms = AskingTerms(),  # noqa: B008 - a value
        clock: Clock = SystemClock(),  # noqa: B008 - without a state
    ) -> None:
        self._service = service
        self._principal = principal
        self._transport = transport
        self._relay = relay
        self._confirm = confirm
        self._terms = terms
        self._calls = McpCalls(service)
        self._clients: dict[tuple[str | TokenIdentity | None, ...], McpCaller] = {}
        self._tasks = TaskHandles(clock)
        self._parking = Parking(self._tasks)
        self._views = Views(service.tools, names)
        self._listening = ListenStreams(self._tasks, self._who)
        self.changes = ListChanges(self._views, self._listening)
        if relay is not None:
            relay.subscribe(self.changes)
        self._unwatch = service.tools.watch(self._changed)

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

    async def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Take a notification of a client; one of its own goes to the server that is wrapped."""
        if self._relay is not None and self._relay.passes(method):
            await self._relay.tell(method, params)

    def close_streams(self) -> None:
        """End the streams that clients of 2026-07-28 listen to."""
        self._listening.close()

    def _changed(self) -> None:
        self._views.forget()
        if self._relay is not None:
            self._relay.renew()
        self.changes.changed()

    # --- requests

    async def answer(self, request: ClientRequest) -> dict[str, Any]:
        """The result of a client's request. Raises MCPError."""
        method, modern = request.method, request.modern
        if method == "ping" and not modern:
            return {}
        if method == ("server/discover" if modern else "initialize"):
            return await self._introduced(request)
        answer = self._answer_to(method, modern=modern)
        if request.program is None and not modern:
            raise MCPError(code=INVALID_PARAMS, message="initialize comes first")
        result = await answer(request)
        return self._signed(result, self._relay.info if self._relay is not None else None) if modern else result

    def _answer_to(self, method: str, *, modern: bool) -> _Answer:
        match method:
            case "tools/call":
                return self._called
            case "tools/list":
                return self._listed
            case "subscriptions/listen" if modern:
                return self._listening.serve
            case _ if method in METHODS:
                return self._asked_about
            case _ if self._relay is not None and self._relay.passes(method):
                return self._relayed
            case _:
                raise MethodNotFoundError(method)

    async def _introduced(self, request: ClientRequest) -> dict[str, Any]:
        """The answer to a handshake; where a server is wrapped, it is the one that introduces itself."""
        relay = self._relay
        capabilities = {**_TOOLS, **(_RELAYED if relay is not None else {})}
        members: dict[str, Any] = {"capabilities": capabilities, "instructions": _INSTRUCTIONS}
        if request.modern:
            members |= {"supportedVersions": list(MODERN_VERSIONS), "ttlMs": 0, "cacheScope": "private"}
            members = self._signed(members, None)
        else:
            members |= {"protocolVersion": request.version, "serverInfo": _US}
        introduced = members if relay is None else await relay.introduce(members, self._look(request))
        return announced(introduced, request.method, wrapped=relay is not None and relay.wraps)

    def _signed(self, result: dict[str, Any], info: dict[str, Any] | None) -> dict[str, Any]:
        """A result with what every result says since 2026-07-28: its type, and the server that gives it."""
        return {
            "resultType": "complete",
            **result,
            "_meta": {**result.get("_meta", {}), SERVER_INFO_META_KEY: info or _US},
        }

    async def _listed(self, request: ClientRequest) -> dict[str, Any]:
        if request.params.get("cursor") is not None:
            raise MCPError(INVALID_PARAMS, "Invalid cursor: the list has one page")
        viewer = self._viewer(request)
        view = await self._views.of(viewer, viewing.PATIENCE_S)
        if view.unlisted and self._relay is not None:
            await self._relay.relist()
            view = await self._views.of(viewer, viewing.PATIENCE_S)
        self.changes.given(viewer, view, None if request.modern else request.connection)
        if request.modern:
            return {"tools": list(view.definitions), "ttlMs": 0, "cacheScope": "private"}
        return {"tools": [for_older(each) for each in view.definitions]}

    async def _called(self, request: ClientRequest) -> dict[str, Any]:
        name, args = _asked_for(request.params)
        client, viewer, access = self._client(request), self._viewer(request), request.caller.access
        is_search = viewer.listed is not None and name == CALL
        try:
            if viewer.listed is not None and name == SEARCH:
                search = msgspec.convert(args, ToolSearch)
                return reply_with(await self._views.best(viewer, search.query, search.limit, viewing.PATIENCE_S))
            if is_search:
                named = msgspec.convert(args, ToolByName)
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
            if not is_search:
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
        """Return whether a tool's definition lets clients of 2025-11-25 ask for a task."""
        tool = await self._service.tools.known(await self._views.full(viewer, name))
        return tool is not None and task_support(tool.definition) != "forbidden"

    async def _call(
        self,
        client: McpCaller,
        viewer: Viewer,
        name: str,
        args: dict[str, Any],
        peer: ClientPeer | Parked,
        access: Access,
    ) -> dict[str, Any]:
        tool = await self._views.full(viewer, name)
        known = await self._service.tools.known(tool)  # a call may change what its server offers
        progress, terms = Progress(peer), self._terms.of(access, client.name)
        asker = CallAsker(client, peer, access, terms, progress.waits)
        outcome = await self._calls.make(asker, tool, args, progress=progress)
        progress.end()
        if outcome.code == Code.UNKNOWN_TOOL.name:
            reason = {"code": outcome.code, "reason": outcome.reason, "remedy": outcome.remedy}
            raise UnknownToolError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:100]}", data=reason)
        peer_error = outcome.detail.get(MCP_ERROR) if isinstance(outcome.detail, dict) else None
        if isinstance(peer_error, dict):
            raise MCPError(code=peer_error["code"], message=peer_error["message"], data=peer_error.get("data"))
        known = known or await self._service.tools.known(tool)
        result = peer.results.get(outcome.invocation_id)
        streams, confirm = self._service.streams, self._confirm
        return await reply_of(outcome, streams, known, confirm, waiting=terms.waiting, result=result)

    # --- who

    def _who(self, request: ClientRequest) -> str:
        """The principal of a request: its token's, or the process's."""
        return request.caller.access.principal or self._principal

    def _viewer(self, request: ClientRequest) -> Viewer:
        access = request.caller.access
        return Viewer(self._who(request), access.tools, self._terms.listed(access))

    def _client(self, request: ClientRequest) -> McpCaller:
        """The caller's session: of the connection, or of the program if each request stands for itself."""
        principal, program = self._who(request), request.program or ClientProgram("", "")
        # Since 2026-07-28 there are no sessions on the wire: a session in the header is unchecked.
        session = None if request.modern else request.caller.session
        identity = request.caller.access.identity
        key = (principal, identity, session) if session else (principal, identity, program.name, program.version)
        client = self._clients.pop(key, None)
        if client is None:
            own = [other for other in self._clients if other[0] == principal]
            if len(own) >= _MAX_OF_ONE:
                del self._clients[own[0]]
            client = McpCaller(
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


_STEP: Final = 0.001


class Progress:
    """Passes progress on to the client that asked for it."""

    def __init__(self, peer: ClientPeer | Parked) -> None:
        self._peer = peer
        self._ended = False
        self._waited = 0.0

    def waits(self, message: str) -> None:
        """Report that the call waits, in steps so small that what the tool reports afterwards is more."""
        self._waited += _STEP
        self(self._waited, None, message)

    def __call__(self, done: float | None, total: float | None, message: str) -> None:
        """Report; the client may be slow, the tool does not wait for it."""
        if done is not None and not self._ended:
            self._peer.report(max(done, self._waited), total, str(message))  # a line of output is its own kind of text

    def end(self) -> None:
        """Take no more: nothing may come after the answer."""
        self._ended = True
