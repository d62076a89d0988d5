"""A route: everything that serving it, documenting it and calling it from afar need to know.

A handler gets the service and what the request asks, already decoded and checked, and returns a value of the declared
type. What it raises becomes a problem with the code's HTTP status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.codes import Code
from remit.http.access import Access, Scope
from remit.http.trace_context import TraceContext
from remit.operation import Method
from remit.service.requests import started_by

if TYPE_CHECKING:
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


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that says more than its value."""

    value: Any
    status: int = 0
    """The HTTP status; 0: the route's."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    media: str = "application/json"
    """The media type; if it is not JSON, the value is text or bytes."""


Handler = Callable[[ApiRequest], Awaitable[Any]]
Stream = Callable[[ApiRequest], AsyncIterator["Sent"]]
"""A handler that answers with server-sent events."""


class Sent(msgspec.Struct, frozen=True):
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
