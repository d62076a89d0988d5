"""Answers requests by the table of routes: finds the route, checks the scope, decodes, calls the handler, encodes.

The session of each principal: where its calls over HTTP are recorded.

Holds an answer until there is news, for some seconds, or until the client leaves or the server stops.

Errors of the service as problems over HTTP: the status comes from the one table of codes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from remit.api.events import left, serve_events
from remit.api.readiness import require_room
from remit.api.route import BODY_S, ApiRequest, DetailedAnswer, Handler, Route, body_of, key_of, path_of, query_of
from remit.codes import Code
from remit.errors import BusyError, RemitError
from remit.gateway.schema_gate import warnings_counted
from remit.http.access import RequestPlaces
from remit.http.problem import HttpProblem
from remit.http.reader import Read
from remit.http.router import REQUEST, RouterRequest
from remit.redact import line
from remit.service.reach import check_reach
from remit.service.requests import RequestAnswer
from remit.tasks import first

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.http.access import TokenIdentity
    from remit.http.reader import Reader
    from remit.service.service import Service


_KEPT: Final = 1_000
"""Principals whose session is remembered; the one that was idle longest gets a new one."""


class HttpSessions:
    """Opens a session for each principal, when its first call comes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: OrderedDict[tuple[str, TokenIdentity | None], asyncio.Future[str]] = OrderedDict()

    async def of(self, principal: str, identity: TokenIdentity | None = None) -> str:
        """The session of a principal, whose `identity` an issuer's token proved."""
        key = (principal, identity)
        session = self._open.get(key)
        if session is None or (session.done() and (session.cancelled() or session.exception() is not None)):
            opening = self._service.sessions.open("http", principal=principal, client="http", identity=identity)
            session = self._open[key] = asyncio.ensure_future(opening)
            if len(self._open) > _KEPT:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return await asyncio.shield(session)


_log: Final = logging.getLogger("remit.api")
_DETAIL: Final = 1_000
_INTERNAL: Final = 500


def problem_of(error: Exception) -> HttpProblem:
    """The problem that tells a client of an error; a defect of our own is logged and not described."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, RemitError):
        if error.code.http >= _INTERNAL:
            _log.warning("%s", line(str(error), _DETAIL))
        headers = {"retry-after": str(error.again_s)} if isinstance(error, BusyError) else None
        remedy = {"remedy": line(error.remedy, _DETAIL)} if error.remedy else {}
        return HttpProblem(error.code, line(error.message, _DETAIL), headers, **remedy)
    _log.error("a request failed", exc_info=error)
    return HttpProblem(Code.UNHANDLED_EXCEPTION)


_JSON: Final = "application/json"
_NO_CONTENT: Final = 204
_encode: Final = msgspec.json.Encoder().encode
_ordered: Final = msgspec.json.Encoder(order="deterministic").encode


class Api:
    """The API, as a part of the server.

    It serves `routes` over `service`; with `counts_warnings`, answers say what the schema gate let pass. A body has
    `body_s` seconds to arrive. `readers` are told of every answer to a GET request before it leaves.
    """

    def __init__(
        self,
        service: Service,
        routes: Sequence[Route],
        places: RequestPlaces,
        *,
        counts_warnings: bool = False,
        body_s: float = BODY_S,
        readers: Sequence[Reader] = (),
    ) -> None:
        self._readers = tuple(readers)
        self._body_s = body_s
        self._service = service
        self._counts_warnings = counts_warnings
        self._places = places
        self._routes = tuple(routes)
        self._sessions = HttpSessions(service)
        by_shape: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            shape = tuple("" if part.startswith("{") else part for part in route.path.split("/")[1:])
            by_shape.setdefault(shape, {})[route.method] = route
        self._shapes = sorted(by_shape.items(), key=lambda each: each[0].count(""))

    @property
    def paths(self) -> tuple[str, ...]:
        """The first parts of all paths that it answers at."""
        return tuple(dict.fromkeys(f"/{shape[0]}" for shape, _ in self._shapes))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    def close_streams(self) -> None:
        self._places.closing.set()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        request: RouterRequest = scope[REQUEST]
        segments = scope["raw_path"].decode("latin-1").split("/")[1:]  # a slash inside a name comes as %2F
        route = self._route(scope["method"], segments)
        if route.scope is not None:
            request.access.require(route.scope)
        async with self._places.taken(request.access.principal or ""):
            try:
                await self._answer(route, segments, scope, request, receive, send)
            except asyncio.CancelledError:
                if not self._places.closing.is_set():
                    raise
                raise HttpProblem(Code.SERVER_STOPPING) from None
            except Exception as error:
                raise problem_of(error) from error

    async def _answer(
        self, route: Route, segments: list[str], scope: Any, request: RouterRequest, receive: Receive, send: Send
    ) -> None:
        api_request = ApiRequest(
            service=self._service,
            path=path_of(route, segments),
            query=query_of(route.query, scope["query_string"]),
            body=await body_of(route, request.headers, receive, self._body_s),
            access=request.access,
            headers=request.headers,
            trace=request.trace,
            key=key_of(route, request.headers),
            request="",
            stopping=self._places.closing,
            left=lambda: left(receive),
            session=lambda: self._sessions.of(request.access.principal or "", request.access.identity),
            routes=self._routes,
        )
        await check_reach(self._service, request.access, api_request.path)
        if route.begins:
            require_room(self._service.health)
        if route.stream is not None:
            await self._tell(route, api_request)
            await serve_events(route.stream(api_request), self._places, receive, send)
        elif route.handler is not None:
            with warnings_counted() as tally:
                under_key = api_request.key and not route.keeps_key
                answer = await (
                    self._once(route, route.handler, api_request)
                    if under_key
                    else _encoded(route, route.handler, api_request)
                )
            await self._tell(route, api_request)
            if shards := self._service.health.missing_shards():
                answer.headers["x-journal-missing"] = ", ".join(shard.partition(" (")[0] for shard in shards)
            if self._counts_warnings:
                answer.headers["x-schema-warn-count"] = str(tally.count)
            await _say(answer, send)

    async def _tell(self, route: Route, request: ApiRequest) -> None:
        if route.method == "GET" and route.scope is not None:
            for reader in self._readers:
                await reader(Read("http", route.name, request.path, request.principal))

    async def _once(self, route: Route, handler: Handler, request: ApiRequest) -> Encoded:
        """Answer a request under a key: as it was answered before, if it was."""
        requests = self._service.requests
        body_hash = sha256(_ordered(request.body)).hexdigest()
        taken = await requests.take(route.name, request.key, body_hash, request.principal)
        if taken.answered is None:
            answer = await _encoded(route, handler, request._replace(request=taken.request))
            answered = await requests.answer(taken.request, RequestAnswer(answer.status, answer.body))
        else:
            answered = taken.answered
        return Encoded(answered.status, answered.body, {}, route.media)

    def _route(self, method: str, segments: list[str]) -> Route:
        """The route with the fewest braces that takes this path and method."""
        wanted_method = "GET" if method == "HEAD" else method
        allowed: set[str] = set()
        for shape, methods in self._shapes:
            if len(shape) == len(segments) and all(
                part in ("", segment) for part, segment in zip(shape, segments, strict=True)
            ):
                if wanted_method in methods:
                    return methods[wanted_method]
                allowed = allowed or set(methods)
        if allowed:
            raise HttpProblem(Code.METHOD_NOT_ALLOWED, headers={"allow": ", ".join(sorted(allowed))})
        raise HttpProblem(Code.PATH_UNKNOWN)


class Encoded(NamedTuple):
    """An answer, ready to be sent."""

    status: int
    body: bytes
    headers: dict[str, str]
    media: str


async def _encoded(route: Route, handler: Handler, request: ApiRequest) -> Encoded:
    value = await handler(request)
    answer = value if isinstance(value, DetailedAnswer) else DetailedAnswer(value=value)
    status = answer.status or route.status
    if status == _NO_CONTENT:
        return Encoded(status, b"", answer.headers, "")
    if isinstance(answer.value, bytes):
        body = answer.value
    else:
        body = _encode(answer.value) if answer.media == _JSON else str(answer.value).encode()
    return Encoded(status, body, answer.headers, answer.media)


async def _say(answer: Encoded, send: Send) -> None:
    headers = [(name.encode(), text.encode()) for name, text in answer.headers.items()]
    if answer.media:
        headers += [(b"content-type", answer.media.encode()), (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


T = TypeVar("T")


async def held(request: ApiRequest, news: Coroutine[Any, Any, T], seconds: float | None) -> T | None:
    """Return what `news` returns; None if it does not within `seconds`, or if client or server are gone first."""
    value: T | None = (await first(news, request.stopping.wait(), request.left(), seconds=seconds))[0]
    return value
