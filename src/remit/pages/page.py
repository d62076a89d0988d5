"""A page: its path, what it needs, and the function that makes its view.

A handler gets the service and what the request asks, already decoded and checked, and returns a View, which names its
template, a See, which sends the browser to another page, or a File. What it raises becomes a page that says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple
from urllib.parse import unquote
from zoneinfo import ZoneInfo

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
    """The page that the browser goes to, after a form was taken."""

    path: str


class File(NamedTuple):
    """Bytes to keep, never to show: what a tool returned may be anything."""

    name: str
    data: bytes


class PageRequest(NamedTuple):
    """A request for a page, decoded."""

    service: Service
    path: dict[str, str]
    """The values in the braces of the page's path."""
    query: Any
    """The query, of the page's type."""
    form: Any
    """The form, of the page's type; None for a page that takes none."""
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
        """Return the principal in whose name the request comes; empty if the server knows no tokens."""
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
    of: str = ""
    """`job` or `step`: it stands on the page of each, and not above every page."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page, or one form that it takes."""

    path: str
    """Such as `/jobs/{job}`."""
    scope: Scope
    """The scope that a token needs."""
    handler: Handler
    name: str = ""
    """Its entry in the navigation; empty: it has none, or remit.pages.navigation has it."""
    key: str = ""
    """The key that leads there after `g`, if it has an entry."""
    after: str = ""
    """The entry that its own stands behind; empty: the last one."""
    of: Literal["", "job", "step"] = ""
    """Whose page leads there by its name: each job's, or each step's; empty: the navigation does."""
    query: type[msgspec.Struct] = Nothing
    form: type[msgspec.Struct] | None = None
    """The fields of a form that is posted here; None: the page is only looked at."""

    live: Literal["", "heads", "tools", "events", "words"] = ""
    """The news that the page is made again for while someone looks: streams that begin, wake or end; these, and tools
    that change; every event; or every event, and whatever a model says to the path's `job`.
    """
    mark: Callable[[PageRequest], Awaitable[object]] | None = None
    """Gives a value that stays equal while the page would; None: it is made again for all news."""

    @property
    def method(self) -> str:
        """`GET`, or `POST` for a form."""
        return "GET" if self.form is None else "POST"


_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFE: Final = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With no-referrer a browser would send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every answer."""


COOKIE: Final = "remit-zone"
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,2}")


def zone_of(headers: Mapping[str, str]) -> tzinfo:
    """The zone that a request names; UTC if it names none that is known here."""
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE:
            return _zone(unquote(value[:100]))
    return UTC


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if not _NAME.fullmatch(name):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return UTC
