"""The entries that stand above every page. A page of its own is added here and in table.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.pages.inbox import answerable
from remit.pages.rendering import Item

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.service.service import Service

_ENTRIES: Final = (
    ("Overview", "/"),
    ("Jobs", "/jobs"),
    ("Inbox", "/inbox"),
)


async def items(service: Service, access: Access, here: str) -> tuple[Item, ...]:
    """The entries; the one that `here` belongs to is the current one. Inbox counts what this reader can answer."""
    path = here.partition("?")[0]
    waiting = await answerable(service, access) if access.allows("read") else 0
    return tuple(Item(name, at, _within(path, at), waiting if name == "Inbox" else 0) for name, at in _ENTRIES)


def _within(path: str, at: str) -> bool:
    return path == at or (at != "/" and path.startswith(f"{at}/"))
