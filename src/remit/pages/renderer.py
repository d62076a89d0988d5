"""Views as HTML. Every value is escaped and made visible on its way out, whatever its template does.

The frame of a page for one reader.

The entries that stand above every page: the core's, and those of the pages of parts.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.clock import age, duration, isoformat
from remit.pages.inbox import answerable
from remit.pages.page import (
    DOORS,
    QUESTIONS,
    NavigationEntry,
    Page,
    PageView,
    brief,
    clock_time,
    dollars,
    exact,
    grouped,
    link,
    moment,
    pieces,
    visible,
    written,
)
from remit.redact import words_of

if TYPE_CHECKING:
    from jinja2 import Environment, FileSystemLoader
    from jinja2.runtime import Context

    from remit.http.access import Access
    from remit.pages.entry import ConsoleEntry, Visitor
    from remit.service.service import Service


_TEMPLATES: Final = Path(__file__).parent / "templates"


class NavigationItem(msgspec.Struct, frozen=True):
    """An entry of the navigation."""

    name: str
    path: str
    current: bool
    count: int = 0
    """The number of things that wait there for this reader."""
    key: str = ""
    """The key that leads there after `g`."""
    under: str = ""
    """Its door, or the question that it answers."""
    about: str = ""


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around every view."""

    items: tuple[NavigationItem, ...]
    """Doors first, in their order; then what stands under doors and questions."""
    links: tuple[tuple[str, str, str], ...]
    """Pages of parts about a `job` or a `step`: which of them, the name, and the path with `{}` for the identifiers."""
    who: str
    """The person who has logged in; empty if no login is needed."""
    csrf: str
    """The token that every form brings back."""
    can: frozenset[str]
    """The viewer's scopes; pages leave out what they could not do."""
    now: int
    zone: tzinfo
    here: str
    """Path and query of this page."""
    listens: bool
    """Whether it asks for what changes on it."""
    again: bool
    """Whether it may be loaded once more as soon as the reader's zone is known."""
    look: frozenset[str] = frozenset()
    """Those of remit.pages.page.LOOKS that the reader chose."""

    doors: tuple[NavigationItem, ...] = ()
    """The entries that stand above every page."""
    tabs: tuple[NavigationItem, ...] = ()
    """The pages of the door that this page stands under; none if it has only one."""
    questions: tuple[tuple[str, tuple[NavigationItem, ...]], ...] = ()
    """The other pages, by the question that they answer."""
    elsewhere: bool = False
    """Whether this page stands under no door."""


def _doors(items: tuple[NavigationItem, ...]) -> tuple[NavigationItem, ...]:
    return tuple(item for item in items if item.name == item.under)


def _tabs(items: tuple[NavigationItem, ...]) -> tuple[NavigationItem, ...]:
    under = next((item.under for item in items if item.current), "")
    tabs = tuple(item for item in items if item.under == under)
    return tabs if under in DOORS and len(tabs) > 1 else ()


def _questions(items: tuple[NavigationItem, ...]) -> tuple[tuple[str, tuple[NavigationItem, ...]], ...]:
    groups = ((each, tuple(item for item in items if item.under == each)) for each in QUESTIONS)
    return tuple((each, under) for each, under in groups if under)


def _elsewhere(items: tuple[NavigationItem, ...], here: str) -> bool:
    apart = any(item.current and item.under not in DOORS and item.path != "/" for item in items)
    return apart or here.partition("?")[0] == "/more"


def render(view: PageView, shell: Shell) -> bytes:
    """The whole page."""
    environment, loader = _environment()
    folder = str(Path(sys.modules[type(view).__module__].__file__ or "").parent / "templates")
    if folder not in loader.searchpath:  # of a part
        loader.searchpath.append(folder)
    return environment.get_template(view.template).render(view=view, shell=shell).encode()


@cache
def _environment() -> tuple[Environment, FileSystemLoader]:
    # Loaded with the first page: it takes a tenth of a second, and many servers are never looked at.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context  # noqa: PLC0415 - as above

    loader = FileSystemLoader([str(_TEMPLATES)])
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update(link=link, asset=_asset_path)
    environment.filters.update(
        brief=brief,
        words=words_of,
        dollars=dollars,
        duration=duration,
        grouped=grouped,
        pieces=pieces,
        written=written,
        iso=isoformat,
        exact=pass_context(_exact),
        moment=pass_context(_moment),
        clock_time=pass_context(_clock_time),
        ago=pass_context(_ago),
    )
    return environment, loader


def _finalized(value: Any) -> Any:
    """Every value that a template writes passes here; markup of our own is left alone."""
    return visible(value) if type(value) is str else value


def _asset_path(name: str) -> str:
    return asset(name).path


def _exact(context: Context, micros: int) -> str:
    return exact(micros, context["shell"].zone)


def _moment(context: Context, micros: int) -> str:
    return moment(micros, context["shell"].zone, context["shell"].now)


def _clock_time(context: Context, micros: int) -> str:
    return clock_time(micros, context["shell"].zone)


def _ago(context: Context, micros: int) -> str:
    return age(context["shell"].now - micros)


FOLDER: Final = Path(__file__).parent / "static"
PATH: Final = "/static"
_TYPES: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "keys.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file that pages load."""

    path: str
    """Where it is served: the path holds a hash of its content."""
    kind: str
    """Its media type."""
    data: bytes


@cache
def asset(name: str) -> Asset:
    """An asset by its name. Raises KeyError for anything else."""
    kind = _TYPES[name]
    data = (FOLDER / name).read_bytes()
    return Asset(f"{PATH}/{hashlib.sha256(data).hexdigest()[:16]}/{name}", kind, data)


def served(path: str) -> Asset | None:
    """The asset at a path; None if there is none."""
    name = path.rpartition("/")[2]
    return asset_found if name in _TYPES and (asset_found := asset(name)).path == path else None


def entries_of(pages: Iterable[Page]) -> tuple[NavigationEntry, ...]:
    """Return the entries of pages that name one: the doors first, each in its place; the others as they come."""
    entries = []
    for page in pages:
        if page.of:
            path = page.path.replace("{job}", "{}").replace("{step}", "{}")
            entries.append(NavigationEntry(page.name, path, page.scope, "", page.of))
        elif page.name:
            entries.append(NavigationEntry(page.name, page.path, page.scope, page.key, "", page.under, page.about))
    places = {name: number for number, name in enumerate(DOORS)}
    return tuple(sorted(entries, key=lambda entry: places.get(entry.name, len(places))))


async def items(
    entries: Iterable[NavigationEntry], service: Service, access: Access, here: str, *, counted: bool
) -> tuple[NavigationItem, ...]:
    """The entries; the one that `here` belongs to is the current one. Inbox counts what this reader can answer."""
    path = here.partition("?")[0]
    waiting = await answerable(service, access) if counted and access.allows("read") else 0
    return tuple(
        NavigationItem(name, at, _within(path, at), waiting if name == "Inbox" else 0, key, under, about)
        for name, at, scope, key, of, under, about in entries
        if not of and access.allows(scope)
    )


def _within(path: str, at: str) -> bool:
    return path == at or (at != "/" and path.startswith(f"{at}/"))


async def shell_for(
    entries: Iterable[NavigationEntry],
    service: Service,
    entry: ConsoleEntry,
    visitor: Visitor,
    csrf: str,
    now: int,
    zone: tzinfo,
    here: str,
    *,
    look: frozenset[str] = frozenset(),
    counted: bool = True,
    listens: bool = True,
    again: bool = False,
) -> Shell:
    """The shell of the page at `here`; `csrf` stands in its forms.

    Without `counted`, the journal is not asked. `listens`: the page asks for what changes on it. `again`: it may be
    loaded once more for the reader's zone.
    """
    access = visitor.access
    entries = tuple(entries)
    shown = await items(entries, service, access, here, counted=counted) if visitor.known else ()
    return Shell(
        items=shown,
        doors=_doors(shown),
        tabs=_tabs(shown),
        questions=_questions(shown),
        elsewhere=_elsewhere(shown, here),
        links=tuple((entry.of, entry.name, entry.path) for entry in entries if entry.of and access.allows(entry.scope)),
        who="" if entry.open or not visitor.known else (access.principal or ""),
        csrf=csrf,
        can=frozenset(access.scopes),
        now=now,
        zone=zone,
        look=look,
        here=here,
        listens=listens,
        again=again,
    )
