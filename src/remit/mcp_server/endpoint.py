"""The one URL that clients over HTTP talk to, as an ASGI application.

Fills the place of the SDK's own transport, which takes a task group, four queues and two models for every request, and
100 kB for a client that only listens.

    before 2026-07-28   requests of a session, which `initialize` began; what belongs to none of them goes over a GET
    since               each request stands for itself, and is over when its client leaves
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PARAM_HEADER_PREFIX,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from starlette.datastructures import Headers

from remit.codes import Code
from remit.http.access import REQUESTS, RequestPlaces
from remit.http.problem import HttpProblem, HttpRefusal
from remit.http.router import REQUEST, RouterRequest
from remit.jsonrpc import message
from remit.jsonrpc.inbound import Inbound, answer_to
from remit.jsonrpc.message import UnreadableMessageError, read
from remit.jsonrpc.protocol import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    MCP_PROTOCOL_VERSION_HEADER,
    PARSE_ERROR,
    as_request_id,
    has_handshake,
)
from remit.large import MAX_VALUES, has_too_many_values
from remit.mcp_server.conversation import RequestEnvelope
from remit.mcp_server.exchange import McpExchange, Outbox
from remit.mcp_server.request import MAX_REQUEST_BYTES, PATH, HttpCaller
from remit.mcp_server.sessions import MAX_PER_PRINCIPAL, ClientSession, ClientSessions
from remit.tasks import Tasks

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from remit.jsonrpc.message import RpcMessage
    from remit.jsonrpc.protocol import RequestId
    from remit.mcp_server.server import ToolServer

SESSION: Final = "mcp-session-id"
BODY_S: Final = 60.0
"""Seconds that a body may take to arrive."""
_LISTEN: Final = "subscriptions/listen"
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_PARAM: Final = MCP_PARAM_HEADER_PREFIX.lower()


class Endpoint:
    """Answers at `/mcp` while it is running."""

    def __init__(self, face: ToolServer, *, body_s: float = BODY_S, requests: int = REQUESTS) -> None:
        self._face = face
        self._arriving = RequestPlaces(requests)
        """Bodies. An answer to a question of ours takes no place of a request, which may be what waits for it."""
        self._requests = RequestPlaces(requests)
        self._listening = RequestPlaces(MAX_PER_PRINCIPAL)
        """Requests that only listen; before 2026-07-28 the sessions are counted."""
        self._body_s = body_s
        self._sessions = ClientSessions(face)
        self._serving = Tasks()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._sessions.close()
            self._serving.cancel()
            await self._serving.ended()

    def close_streams(self) -> None:
        self._sessions.close_streams()
        self._face.close_streams()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].removesuffix("/") != PATH:
            raise HttpProblem(Code.PATH_UNKNOWN)
        request: RouterRequest = scope[REQUEST]
        headers = request.headers
        caller = HttpCaller(request.access, headers.get(SESSION))
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if version is None or has_handshake(version):
            await self._older(scope, headers, caller, receive, send)
        else:
            await self._newer(scope, headers, caller, receive, send)

    # --- since 2026-07-28

    async def _newer(
        self, scope: Scope, headers: Mapping[str, str], caller: HttpCaller, receive: Receive, send: Send
    ) -> None:
        if scope["method"] != "POST":
            raise HttpProblem(Code.METHOD_NOT_ALLOWED, headers={"allow": "POST"})
        if _accepted(headers.get("accept", "")) != (True, True):
            raise HttpProblem(Code.NOT_ACCEPTABLE, "application/json and text/event-stream are answered.")
        message = await self._message(headers, caller, receive)
        request_id = as_request_id(message.get("id"))
        if "id" not in message:
            _check(unsupported_protocol_version_rejection(headers[MCP_PROTOCOL_VERSION_HEADER]), None)
            await _accept(send)  # there is nothing that a client could tell: it cancels by leaving
            return
        method, params = message.get("method"), message.get("params")
        if request_id is None or not isinstance(method, str) or not isinstance(params, dict | None):
            raise RpcError(400, INVALID_REQUEST, "the body has to be one request or notification")
        envelope = self._envelope(scope, headers, message, request_id)
        places = self._listening if method == _LISTEN else self._requests
        async with places.taken(caller.access.principal or ""):
            await self._served(envelope, request_id, method, params, caller, receive, send)

    async def _served(
        self,
        envelope: RequestEnvelope,
        request_id: RequestId,
        method: str,
        params: dict[str, Any] | None,
        caller: HttpCaller,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a request that stands for itself; it is over when its client leaves."""
        outbox = Outbox()
        inbound = Inbound(outbox, request_id, params, asking=None, caller=caller)

        async def handle(context: Inbound, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
            return await self._face.answer(envelope.request(context, method, params))

        async def serve() -> None:
            outbox.send(await answer_to(inbound, handle, method, params))

        inbound.task = self._serving.task(serve())
        try:
            await McpExchange(outbox, receive, send).answer(request_id, inbound.task, ERROR_CODE_HTTP_STATUS)
        finally:
            if not inbound.task.done():
                inbound.cancel()

    def _envelope(
        self, scope: Scope, headers: Mapping[str, str], message: Mapping[str, Any], request_id: RequestId
    ) -> RequestEnvelope:
        """Return what the request says about itself; its headers have to say the same."""
        twice = find_duplicated_routing_header((name.decode("latin-1"), "") for name, _ in scope["headers"])
        if twice is not None:
            _check(InboundLadderRejection(HEADER_MISMATCH, f"{twice} header appears more than once"), request_id)
        route = classify_inbound_request(message, headers=headers)
        _check(route if isinstance(route, InboundLadderRejection) else None, request_id)
        params = message.get("params") or {}
        name, args = params.get("name"), params.get("arguments")
        if message["method"] == "tools/call" and isinstance(name, str) and isinstance(args, dict | None):
            schema = self._face.input_schema(name) if args or _repeats_arguments(headers) else None
            if schema is not None:
                _check(validate_mcp_param_headers(schema, args or {}, Headers(scope=scope)), request_id)
        return RequestEnvelope.of(params)

    # --- before 2026-07-28

    async def _older(
        self, scope: Scope, headers: Mapping[str, str], caller: HttpCaller, receive: Receive, send: Send
    ) -> None:
        match scope["method"]:
            case "POST":
                await self._posted(headers, caller, receive, send)
            case "GET":
                session = self._session(caller)
                if not _accepted(headers.get("accept", ""))[1]:
                    raise RpcError(406, INVALID_REQUEST, "Not Acceptable: an event stream is what there is")
                if session.outbox.open:
                    raise RpcError(409, INVALID_REQUEST, "Conflict: this session listens already")
                with session.used():
                    await McpExchange(session.outbox, receive, send, _named(session)).stream(session.ended)
            case "DELETE":
                session = self._session(caller)
                await self._sessions.end(session)
                await _accept(send, 200, _named(session))
            case _:
                raise HttpProblem(Code.METHOD_NOT_ALLOWED, headers={"allow": "GET, POST, DELETE"})

    async def _posted(self, headers: Mapping[str, str], caller: HttpCaller, receive: Receive, send: Send) -> None:
        if _accepted(headers.get("accept", "")) != (True, True):
            raise RpcError(406, INVALID_REQUEST, "Not Acceptable: application/json and text/event-stream")
        message = await self._message(headers, caller, receive)
        asks = "id" in message and "method" in message
        if asks and as_request_id(message["id"]) is None:
            raise RpcError(400, INVALID_REQUEST, "the id has to be text or a whole number")
        if not asks:
            session = self._session(caller)
            with session.used():
                session.dispatcher.take(message, caller=caller)
                await _accept(send, 202, _named(session))
            return
        async with self._requests.taken(caller.access.principal or ""):
            if message["method"] == "initialize" and caller.session is None:
                await self._begin(message, caller, receive, send)
                return
            session = self._session(caller)
            with session.used():
                await self._asked(session, message, caller, receive, send)

    async def _begin(self, message: Mapping[str, Any], caller: HttpCaller, receive: Receive, send: Send) -> None:
        """A session begins, if its first request is answered."""
        session = self._sessions.begin(caller.access.principal)
        if session is None:
            raise RpcError(503, INVALID_REQUEST, "Too many open sessions")
        answer = None
        try:
            with session.used():
                caller = HttpCaller(caller.access, session.id)
                answer = await self._asked(session, message, caller, receive, send)
        finally:
            if answer is None or answer.error_code is not None:
                await self._sessions.end(session)

    async def _asked(
        self, session: ClientSession, message: Mapping[str, Any], caller: HttpCaller, receive: Receive, send: Send
    ) -> RpcMessage | None:
        """Have a request answered; a client that leaves has not cancelled it."""
        outbox = Outbox()
        exchange = McpExchange(outbox, receive, send, _named(session))
        task = session.dispatcher.take(message, outbox, caller)
        answer = None
        try:
            answer = await exchange.answer(as_request_id(message["id"]), task, {})
            return answer
        finally:
            if answer is None:  # one that had its answer may still say what it was asked meanwhile
                session.dispatcher.left(outbox)

    async def _message(self, headers: Mapping[str, str], caller: HttpCaller, receive: Receive) -> dict[str, Any]:
        """The one message that a request brings. Raises Refusal."""
        async with self._arriving.taken(caller.access.principal or ""):
            return await _message(headers, receive, self._body_s)

    def _session(self, caller: HttpCaller) -> ClientSession:
        if caller.session is None:
            raise RpcError(400, INVALID_REQUEST, "Bad Request: Missing session ID")
        session = self._sessions.find(caller.session, caller.access.principal)
        if session is None:  # also where it is someone else's: who asks learns nothing about that
            raise RpcError(404, INVALID_REQUEST, "Session not found")
        return session


# -------------------------------------------------------------------------------------------------------- what comes in
async def _message(headers: Mapping[str, str], receive: Receive, seconds: float) -> dict[str, Any]:
    """The one message that a request brings. Raises Refusal."""
    if not headers.get("content-type", "").lower().startswith(_JSON):
        raise HttpProblem(Code.MEDIA_TYPE_UNSUPPORTED, "The Content-Type has to be application/json.")
    try:
        async with asyncio.timeout(seconds):
            body = await _body(headers, receive)
    except TimeoutError:
        raise HttpProblem(Code.BODY_TIMEOUT, f"The body did not arrive within {seconds:g} s.") from None
    try:
        message = read(body)
    except UnreadableMessageError as error:
        about = None if error.is_answer else error.request_id
        raise RpcError(400, PARSE_ERROR, f"Parse error: {error}", about=about) from None
    if has_too_many_values(body, message):
        raise HttpProblem(Code.REQUEST_TOO_LARGE, f"A message has at most {MAX_VALUES} members and items.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(400, INVALID_REQUEST, "the body has to be one message of JSON-RPC 2.0")
    return message


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > MAX_REQUEST_BYTES:
        raise HttpProblem(Code.REQUEST_TOO_LARGE)
    pieces, size, more = [], 0, True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise HttpProblem(Code.REQUEST_INVALID, "The client left before the end of its request.")
        pieces.append(event.get("body", b""))
        size += len(pieces[-1])
        if size > MAX_REQUEST_BYTES:
            raise HttpProblem(Code.REQUEST_TOO_LARGE)
        more = event.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@lru_cache(maxsize=64)
def _accepted(accept: str) -> tuple[bool, bool]:
    """Return whether a client takes JSON, and whether it takes event streams."""
    kinds = {each.partition(";")[0].strip().lower() for each in accept.split(",")}
    return bool(kinds & {_JSON, "application/*", "*/*"}), bool(kinds & {_EVENTS, "text/*", "*/*"})


def _repeats_arguments(headers: Mapping[str, str]) -> bool:
    return any(name.startswith(_PARAM) for name in headers)


# -------------------------------------------------------------------------------------------------------- what goes out
def _check(rejection: InboundLadderRejection | None, about: RequestId | None) -> None:
    if rejection is not None:
        code = rejection.code
        raise RpcError(ERROR_CODE_HTTP_STATUS.get(code, 400), code, rejection.message, rejection.data, about)


def _named(session: ClientSession) -> list[tuple[bytes, bytes]]:
    return [(SESSION.encode(), session.id.encode())]


async def _accept(send: Send, status: int = 202, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    length = (b"content-length", b"0")
    await send({"type": "http.response.start", "status": status, "headers": [length, *(headers or [])]})
    await send({"type": "http.response.body", "body": b""})


class RpcError(HttpRefusal):
    """A request that is refused with a JSON-RPC error."""

    def __init__(self, status: int, code: int, text: str, data: Any = None, about: RequestId | None = None) -> None:
        error = {"code": code, "message": text} if data is None else {"code": code, "message": text, "data": data}
        super().__init__(status, message.error(about, error).body, "application/json")
