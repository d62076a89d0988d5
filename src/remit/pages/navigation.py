"""The entries that stand above every page: the core's, and those of the pages of parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from remit.pages.inbox import answerable
from remit.pages.page import NavigationEntry, Page
from remit.pages.rendering import Item

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.service.service import Service

_CORE: Final[tuple[NavigationEntry, ...]] = (
    NavigationEntry("Overview", "/", "read", "o"),
    NavigationEntry("Jobs", "/jobs", "read", "j"),
    NavigationEntry("Inbox", "/inbox", "read", "i"),
    NavigationEntry("Tools", "/tools", "read", "t"),
    NavigationEntry("Policy", "/policy", "read", "p"),
    NavigationEntry("MCP", "/servers", "read", "m"),
    NavigationEntry("Sessions", "/sessions", "read", "s"),
    NavigationEntry("Usage", "/usage", "read", "u"),
    NavigationEntry("Workers", "/workers", "read", "w"),
)


def entries_of(pages: Iterable[Page]) -> tuple[NavigationEntry, ...]:
    """Return the core's entries, and among them those of pages that name one."""
    entries = list(_CORE)
    for page in pages:
        if page.of:
            path = page.path.replace("{job}", "{}").replace("{step}", "{}")
            entries.append(NavigationEntry(page.name, path, page.scope, "", page.of))
        elif page.name:
            names = [entry.name for entry in entries]
            place = names.index(page.after) + 1 if page.after in names else len(names)
            entries.insert(place, NavigationEntry(page.name, page.path, page.scope, page.key))
    return tuple(entries)


async def items(
    entries: Iterable[NavigationEntry], service: Service, access: Access, here: str, *, counted: bool
) -> tuple[Item, ...]:
    """The entries; the one that `here` belongs to is the current one. Inbox counts what this reader can answer."""
    path = here.partition("?")[0]
    waiting = await answerable(service, access) if counted and access.allows("read") else 0
    return tuple(
        Item(name, at, _within(path, at), waiting if name == "Inbox" else 0, key)
        for name, at, scope, key, of in entries
        if not of and access.allows(scope)
    )


def _within(path: str, at: str) -> bool:
    return path == at or (at != "/" and path.startswith(f"{at}/"))
