"""A page: its path, what it needs, and the function that makes its view.

A handler gets the service and what the request asks, already decoded and checked, and returns a View, which names its
template, a See, which sends the browser to another page, or a File. What it raises becomes a page that says what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import msgspec

from remit.http.access import Access, Scope
from remit.pages.memory import Memory

if TYPE_CHECKING:
    from remit.service.service import Service


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a template shows, as plain values; it finds them as `view`."""

    template: ClassVar[str]
    """The template's file in `templates/`."""
    title: str
    """The page's title, and its first heading."""
    status: int = 200
    """The HTTP status."""


class See(NamedTuple):
    """Where the browser goes next, after a form was taken."""

    path: str


class File(NamedTuple):
    """Bytes to keep, never to show: what a tool returned may be anything."""

    name: str
    data: bytes


class PageRequest(NamedTuple):
    """A request for a page, decoded."""

    service: Service
    path: dict[str, str]
    """What stands in the braces of the page's path."""
    query: Any
    """Of the page's query type."""
    form: Any
    """Of the page's form type; None for a page that takes none."""
    access: Access
    now: int
    """The time, in microseconds since the Unix epoch."""
    zone: tzinfo
    """The reader's time zone."""
    here: str
    """Path and query of the request."""
    session: Callable[[], Awaitable[str]]
    """Gives the session that calls of this reader are recorded in."""
    memory: Memory
    """Keeps what took long to make."""

    @property
    def principal(self) -> str:
        """In whose name the request comes; empty if the server knows no tokens."""
        return self.access.principal or ""


class Nothing(msgspec.Struct, frozen=True):
    """A query or a form without fields."""


Handler = Callable[[PageRequest], Awaitable[View | See | File]]


class NavigationEntry(NamedTuple):
    """An entry of the navigation."""

    name: str
    path: str
    scope: Scope
    """Without it there is nothing to see."""
    key: str
    """Leads there after `g`."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page, or one form that it takes."""

    path: str
    """Such as `/jobs/{job}`."""
    scope: Scope
    """What a token needs."""
    handler: Handler
    name: str = ""
    """Its entry in the navigation; empty: it has none, or remit.pages.navigation has it."""
    key: str = ""
    """The key that leads there after `g`, if it has an entry."""
    after: str = ""
    """The entry that its own stands behind; empty: the last one."""
    query: type[msgspec.Struct] = Nothing
    form: type[msgspec.Struct] | None = None
    """The fields of a form that is posted here; None: the page is only looked at."""

    live: Literal["", "heads", "tools", "events", "words"] = ""
    """What the page is made again for while someone looks: streams that begin, wake or end; these, and tools that
    change; every event; or every event, and whatever a model says to the path's `job`."""
    mark: Callable[[PageRequest], Awaitable[object]] | None = None
    """Gives a value that stays equal while the page would; None: it is made again for all news."""

    @property
    def method(self) -> str:
        """`GET`, or `POST` for a form."""
        return "GET" if self.form is None else "POST"
