"""The frame of a page for one reader."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import TYPE_CHECKING

from remit.pages.navigation import items
from remit.pages.rendering import Shell

if TYPE_CHECKING:
    from remit.pages.entry import Entry, Visitor
    from remit.pages.page import NavigationEntry
    from remit.service.service import Service


async def shell_for(
    entries: Iterable[NavigationEntry],
    service: Service,
    entry: Entry,
    visitor: Visitor,
    csrf: str,
    now: int,
    zone: tzinfo,
    here: str,
    *,
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
    return Shell(
        items=await items(entries, service, access, here, counted=counted) if visitor.known else (),
        links=tuple((entry.of, entry.name, entry.path) for entry in entries if entry.of and access.allows(entry.scope)),
        who="" if entry.open or not visitor.known else (access.principal or ""),
        csrf=csrf,
        can=frozenset(access.scopes),
        now=now,
        zone=zone,
        here=here,
        listens=listens,
        again=again,
    )
