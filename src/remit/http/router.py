"""One ASGI application for all that is served: the guard first, then the part that a path belongs to.

The access log: one JSON line for each request that was answered. It holds no header, no query and no body.

A part whose code is loaded with its first request, for it takes longer to load than the rest of the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TextIO

import msgspec

from remit.clock import isoformat
from remit.codes import Code
from remit.http.problem import HttpProblem, HttpRefusal
from remit.http.trace_context import PARENT, TraceContext
from remit.redact import line

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from starlette.types import Receive, Send

    from remit.clock import Clock
    from remit.http.access import Access, Scope
    from remit.http.guard import Guard


_PATH: Final = 300
_encode: Final = msgspec.json.Encoder().encode


class AnsweredRequest(NamedTuple):
    """A request and its answer."""

    method: str
    path: str
    """Without the query, which a client may put a secret into."""
    client: str
    """The address that it came from."""
    principal: str
    """In whose name it came; empty if the server knows no tokens, or if it was not let in."""
    status: int
    """The HTTP status; 0 if the client left before an answer began."""
    code: str
    """The stable code of a refusal; empty for an answer."""
    size: int
    """Bytes of the answer's body."""
    duration_ms: float
    trace: TraceContext


class AccessLog:
    """Writes lines to a file that another program may rotate or read."""

    def __init__(self, out: TextIO, clock: Clock) -> None:
        self._out = out
        self._clock = clock

    def write(self, answered: AnsweredRequest) -> None:
        """Write a line. A log that cannot be written does not keep a request from its answer."""
        row = {
            "at": isoformat(self._clock.now()),
            "method": answered.method,
            "path": line(answered.path, _PATH),
            "status": answered.status,
            "code": answered.code,
            "principal": answered.principal,
            "client": answered.client,
            "bytes": answered.size,
            "duration_ms": round(answered.duration_ms, 3),
            "trace_id": answered.trace.trace_id,
            "span_id": answered.trace.span_id,
        }
        try:
            self._out.write(_encode(row).decode() + "\n")
            self._out.flush()
        except OSError:
            return


REQUEST: Final = "remit.request"
"""Where a part finds the Request in an ASGI scope."""
AUTHORITY: Final = "remit.authority"
"""Where the scope of a request whose target is a whole URL has that URL's authority: it counts, and Host does not."""
ABORT: Final = "remit.abort"
"""Where a part finds the function that cuts a connection: no client takes what broke off for a whole answer."""
_ONCE: Final = frozenset(
    {
        "authorization",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "idempotency-key",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "origin",
        "sec-fetch-mode",
        "sec-fetch-site",
    }
)
"""Headers that decide something and have one value: what stands before us could read another one than we do."""


class RouterRequest(NamedTuple):
    """A request that the router passes on, as far as it knows it."""

    headers: dict[str, str]
    """Names in lower case; of several with one name, the last."""
    access: Access
    trace: TraceContext


class ServerPart(Protocol):
    """The port of what answers at some paths: an ASGI application with a life of its own."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Serve within the block; what is under way at its end is given up."""
        ...

    def close_streams(self) -> None:
        """End streams that clients only listen to: the server stops, and nothing waits for them."""
        ...

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request that the guard let in (ASGI). May raise Refusal until the answer has begun."""
        ...


class StatelessPart:
    """The base of a part whose requests are all that lives in it."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve within the block."""
        yield

    def close_streams(self) -> None:
        """There are none."""


class PartMount(NamedTuple):
    """A part in its place."""

    path: str
    """`/mcp`: that path and all below it."""
    part: ServerPart
    scope: Scope | None
    """The scope that a token needs to reach it at all; None: the part looks for itself."""
    admit: Callable[[Mapping[str, str]], Awaitable[Access]] | None = None
    """Says in whose name a request comes, by its headers, if not by a bearer token. May raise Refusal."""


class Router:
    """Passes requests to the part with the longest path."""

    def __init__(self, guard: Guard, mounts: Sequence[PartMount], log: AccessLog | None = None) -> None:
        self._guard = guard
        self._log = log
        self._mounts = sorted(mounts, key=lambda mount: len(mount.path), reverse=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for mount in self._mounts:
                await stack.enter_async_context(mount.part.running())
            yield

    def close_streams(self) -> None:
        for mount in self._mounts:
            mount.part.close_streams()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if (authority := scope.get(AUTHORITY)) is not None:
            headers["host"] = authority.decode("latin-1")
        exchange = RouterExchange(scope, TraceContext.of(headers.get(PARENT, "")), send)
        try:
            _check_once(scope["headers"])
            mount = self._mount(scope["path"])
            access = await self._access(mount, headers)
            exchange.principal = access.principal or ""
            if mount is None:
                raise HttpProblem(Code.PATH_UNKNOWN)
            if mount.scope is not None:
                access.require(mount.scope)
            request = RouterRequest(headers, access, exchange.trace)
            await mount.part({**scope, REQUEST: request}, receive, exchange.send)
        except HttpRefusal as refusal:
            exchange.code = refusal.name
            await refusal.say(exchange.send)
        finally:
            if self._log is not None:
                self._log.write(exchange.answered())

    async def _access(self, mount: PartMount | None, headers: dict[str, str]) -> Access:
        if mount is None or mount.admit is None:
            return await self._guard.admitted(headers)
        self._guard.admit_page(headers)
        return await mount.admit(headers)

    def _mount(self, path: str) -> PartMount | None:
        for mount in self._mounts:
            if path == mount.path or path.startswith(f"{mount.path.rstrip('/')}/"):
                return mount
        return None


def _check_once(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Raise Problem if a header that has one value comes twice (RFC 9110, section 5.3; for Host RFC 9112, 3.2)."""
    names = [name.decode("latin-1") for name, _ in headers]
    for name in _ONCE.intersection(names):
        if names.count(name) > 1:
            raise HttpProblem(Code.INVALID_INPUT, f"The request has more than one header {name}.")


SAFE: Final = {b"cache-control": b"no-store", b"x-content-type-options": b"nosniff"}
"""Headers of every answer that does not have them: it is for one client, and is what its media type says."""


class RouterExchange:
    """Passes an answer on, names the trace in it, and keeps what the access log says of it."""

    def __init__(self, scope: Any, trace: TraceContext, send: Send) -> None:
        self.trace = trace
        self.principal = ""
        self.code = ""
        self._scope = scope
        self._send = send
        self._began = perf_counter()
        self._status = 0
        self._size = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send a part of the answer (ASGI)."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), (b"traceresponse", self.trace.header.encode())]
            names = {name.lower() for name, _ in headers}
            message = {**message, "headers": headers + [pair for pair in SAFE.items() if pair[0] not in names]}
        else:
            self._size += len(message.get("body", b""))
        await self._send(message)

    def answered(self) -> AnsweredRequest:
        """Return what there is to say of it, now that it is over."""
        address = self._scope.get("client")
        return AnsweredRequest(
            method=self._scope["method"],
            path=self._scope["path"],
            client=address[0] if address else "",
            principal=self.principal,
            status=self._status,
            code=self.code,
            size=self._size,
            duration_ms=(perf_counter() - self._began) * 1_000,
            trace=self.trace,
        )


class Deferred:
    """Stands in for a part until the first request for it comes."""

    def __init__(self, load: Callable[[], None], opened: Callable[[], AbstractAsyncContextManager[ServerPart]]) -> None:
        self._load = load
        self._opened = opened
        self._part: asyncio.Future[ServerPart] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._closing.set()
            if self._holding is not None:
                await self._holding

    def close_streams(self) -> None:
        if self._part is not None and self._part.done() and self._part.exception() is None:
            self._part.result().close_streams()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if self._part is None:
            self._part = asyncio.get_running_loop().create_future()
            self._holding = asyncio.create_task(self._hold(self._part), name="remit:deferred-part")
        part = await asyncio.shield(self._part)
        await part(scope, receive, send)

    async def _hold(self, future: asyncio.Future[ServerPart]) -> None:
        """Load the part and keep it running until the server stops, all in one task."""
        try:
            await asyncio.to_thread(self._load)
            async with self._opened() as part, part.running():
                future.set_result(part)
                await self._closing.wait()
        except Exception as error:
            if future.done():
                raise
            future.set_exception(error)
