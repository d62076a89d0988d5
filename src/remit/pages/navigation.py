"""The entries that stand above every page. A page of its own is added here and in table.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.pages.inbox import answerable
from remit.pages.rendering import Item

if TYPE_CHECKING:
    from remit.http.access import Access, Scope
    from remit.service.service import Service

_ENTRIES: Final[tuple[tuple[str, str, Scope, str], ...]] = (
    ("Overview", "/", "read", "o"),
    ("Jobs", "/jobs", "read", "j"),
    ("Inbox", "/inbox", "read", "i"),
    ("Agents", "/agents", "read", "a"),
    ("Tools", "/tools", "read", "t"),
    ("Policy", "/policy", "read", "p"),
    ("Tickets", "/tickets", "tickets", "k"),
    ("MCP", "/servers", "read", "m"),
    ("Sessions", "/sessions", "read", "s"),
    ("Usage", "/usage", "read", "u"),
    ("Workers", "/workers", "read", "w"),
)
"""Each with its path, the scope without which there is nothing to see, and the key that leads there after `g`."""


async def items(service: Service, access: Access, here: str, *, counted: bool) -> tuple[Item, ...]:
    """The entries; the one that `here` belongs to is the current one. Inbox counts what this reader can answer."""
    path = here.partition("?")[0]
    waiting = await answerable(service, access) if counted and access.allows("read") else 0
    return tuple(
        Item(name, at, _within(path, at), waiting if name == "Inbox" else 0, key)
        for name, at, scope, key in _ENTRIES
        if access.allows(scope)
    )


def _within(path: str, at: str) -> bool:
    return path == at or (at != "/" and path.startswith(f"{at}/"))
