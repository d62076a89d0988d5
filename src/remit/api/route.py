"""A route: everything that serving it, documenting it and calling it from afar need to know.

A handler gets the service and what the request asks, already decoded and checked, and returns a value of the declared
type. What it raises becomes a problem with the code's HTTP status.

From what a client sent to what a handler takes: within caps, decoded strictly, refused in words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from remit.codes import Code
from remit.http.access import Access, Scope
from remit.http.problem import HttpProblem
from remit.http.trace_context import TraceContext
from remit.large import MAX_VALUES, has_too_many_values
from remit.operation import Method
from remit.redact import line
from remit.service.requests import started_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive

    from remit.service.service import Service


BYTES: Final = "application/octet-stream"
"""The media type of a route that answers with bytes as they are."""
NO_BODY: Final[Any] = None


class Empty(msgspec.Struct, frozen=True):
    """A query without parameters."""


class ApiRequest(NamedTuple):
    """A request, decoded."""

    service: Service
    path: dict[str, str]
    """The values in the braces of the route's path."""
    query: Any
    """The query, of the route's type."""
    body: Any
    """The body, of the route's type; None if it has none."""
    access: Access
    headers: dict[str, str]
    """Names in lower case."""
    key: str
    """The Idempotency-Key; empty without one."""
    trace: TraceContext
    """The trace that the request belongs to."""
    request: str
    """Names the request that the key stands for; empty without one, or if the handler honours the key itself."""

    stopping: asyncio.Event
    """Set once the server stops."""
    left: Callable[[], Coroutine[Any, Any, None]]
    """Waits until the client has left."""

    session: Callable[[], Awaitable[str]]
    """Gives the session that calls of this principal are recorded in."""
    routes: Sequence[Route]
    """Every route there is."""

    def identifier(self, prefix: str, number: int = 0) -> str:
        """The identifier of what this request starts, under a key; empty: a new one."""
        return started_by(self.request, prefix, number) if self.request else ""

    @property
    def principal(self) -> str:
        """Return the principal in whose name the request comes; empty if the server knows no tokens."""
        return self.access.principal or ""


class DetailedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that says more than its value."""

    value: Any
    status: int = 0
    """The HTTP status; 0: the route's."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    media: str = "application/json"
    """The media type; if it is not JSON, the value is text or bytes."""


Handler = Callable[[ApiRequest], Awaitable[Any]]
Stream = Callable[[ApiRequest], AsyncIterator["SentEvent"]]
"""A handler that answers with server-sent events."""


class SentEvent(msgspec.Struct, frozen=True):
    """One server-sent event."""

    id: str
    event: str
    data: Any


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One operation."""

    method: Method
    path: str
    """Such as `/v1/jobs/{job}`."""
    name: str
    """The operation's name: `jobs.view`."""
    scope: Scope | None
    """The scope that a token needs; None: any token will do."""
    summary: str
    handler: Handler | None = None
    stream: Stream | None = None
    query: type[msgspec.Struct] = Empty
    body: Any = NO_BODY
    """The type of the JSON body; None: the route takes none."""
    optional: bool = False
    """A request may come without the body, and then has its defaults."""
    answer: Any = None
    """The type of the JSON answer, or a tuple of the types it may have; None: 204 without a body."""
    status: int = 200
    codes: tuple[Code, ...] = ()
    """Codes it can be refused with, beside those of every route."""
    starts: bool = False
    """True if it starts or sends something: then an Idempotency-Key makes a repetition meet the first."""
    keeps_key: bool = False
    """True if the handler honours the key itself."""
    ends: bool = False
    """True if it hands in or ends work."""
    media: str = "application/json"
    """The media type of the answer."""
    also: tuple[int, ...] = ()
    """Further statuses of an answer that is not a problem, such as 202."""
    example: Any = msgspec.UNSET
    """A body that works, for the documentation."""

    @property
    def begins(self) -> bool:
        """True if it begins a job, a call or a ticket: refused while too much waits to be written."""
        return self.method == "POST" and self.scope in {"call", "tickets"} and not self.ends

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in the braces of the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


MAX_BODY: Final = 8 * 1024 * 1024
"""Bytes of a request's body."""
MAX_QUERY: Final = 8_192
MAX_KEY: Final = 255
BODY_S: Final = 20.0
"""Seconds that a body may take to arrive."""
_JSON: Final = "application/json"


async def body_of(route: Route, headers: Mapping[str, str], receive: Receive, seconds: float = BODY_S) -> Any:
    """The body as the route's type. Raise Problem if it is too large, too slow, not JSON or of another form."""
    if route.body is None:
        return None
    if route.optional and _is_empty(headers):
        return route.body()
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise HttpProblem(Code.MEDIA_TYPE_UNSUPPORTED, f"Send {_JSON}.")
    data = await bytes_of(headers, receive, seconds)
    try:
        body = msgspec.json.decode(data, type=route.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpProblem(Code.INVALID_INPUT, f"The body cannot be read: {line(str(error))}") from error
    if has_too_many_values(data, body):
        raise HttpProblem(Code.REQUEST_TOO_LARGE, f"A body has at most {MAX_VALUES} members and items.")
    return body


def _is_empty(headers: Mapping[str, str]) -> bool:
    """Return whether a request comes without a body."""
    return "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"


async def bytes_of(
    headers: Mapping[str, str], receive: Receive, seconds: float = BODY_S, most: int = MAX_BODY
) -> bytes:
    """The body as it comes. Raise Problem if it is too large or too slow."""
    try:
        async with asyncio.timeout(seconds):
            return await _read(headers, receive, most)
    except TimeoutError:
        raise HttpProblem(Code.BODY_TIMEOUT, f"The body did not arrive within {seconds:g} s.") from None


def query_of(kind: type[msgspec.Struct], raw: bytes) -> Any:
    """The query as its type; a name that may come several times becomes a list. Raise Problem."""
    if len(raw) > MAX_QUERY:
        raise HttpProblem(Code.INVALID_INPUT, f"The query is longer than {MAX_QUERY} bytes.")
    return pairs_of(raw, kind, "The query")


def pairs_of(raw: bytes, kind: type[msgspec.Struct], what: str, most: int = 100) -> Any:
    """At most so many names and values, as a query and a form have them, as a type. Raise Problem.

    `what` they are begins a refusal.
    """
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=most)
    except (ValueError, UnicodeDecodeError) as error:
        raise HttpProblem(Code.INVALID_INPUT, f"{what} cannot be read: {line(str(error))}") from error
    return typed(pairs, kind, what)


def typed(pairs: Iterable[tuple[str, str]], kind: type[msgspec.Struct], what: str) -> Any:
    """Names and values as a type; a name that may come several times becomes a list. Raise Problem."""
    fields = {field.encode_name: _is_list(field.type) for field in msgspec.structs.fields(kind)}
    values_by_name: dict[str, Any] = {}
    for name, value in pairs:
        if fields.get(name):
            values_by_name.setdefault(name, []).append(value)
        elif name in values_by_name:
            raise HttpProblem(Code.INVALID_INPUT, f"{what} names {line(name)!r} twice.")
        else:
            values_by_name[name] = value
    unknown = set(values_by_name) - set(fields)
    if unknown:
        raise HttpProblem(Code.INVALID_INPUT, f"{what} has unknown names: {line(', '.join(sorted(unknown)))}")
    try:
        return msgspec.convert(values_by_name, kind, strict=False)
    except msgspec.ValidationError as error:
        raise HttpProblem(Code.INVALID_INPUT, f"{what}: {line(str(error))}") from error


def key_of(route: Route, headers: Mapping[str, str]) -> str:
    """The Idempotency-Key of a request that starts or sends something; empty without one. Raise Problem."""
    key = headers.get("idempotency-key", "")
    if key and not route.starts:
        return ""
    if len(key) > MAX_KEY or not key.isprintable():
        raise HttpProblem(Code.INVALID_INPUT, f"An Idempotency-Key has at most {MAX_KEY} printable characters.")
    return key


def path_of(route: Route, segments: list[str]) -> dict[str, str]:
    """Return what stands in the braces of the route's path."""
    pairs = zip(route.path.split("/")[1:], segments, strict=True)
    return {name[1:-1]: unquote(value) for name, value in pairs if name.startswith("{")}


async def _read(headers: Mapping[str, str], receive: Receive, most: int) -> bytes:
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpProblem(Code.INTERRUPTED, "The client left before its body had arrived.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _too_large(most: int) -> HttpProblem:
    return HttpProblem(Code.REQUEST_TOO_LARGE, f"A body has at most {most} bytes.")


def _is_list(hint: Any) -> bool:
    return getattr(hint, "__origin__", hint) in {list, tuple}
