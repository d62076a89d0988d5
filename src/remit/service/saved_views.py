"""Saved views: filters of the list of jobs that someone keeps under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, NotFoundError, UsageError
from remit.ids import new_id
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.kinds import ViewRemoved, ViewSaved

if TYPE_CHECKING:
    from remit.journal.journal import Journal

KIND: Final = "view"
MOST: Final = 50
"""Views of one person."""
NAME: Final = 60
"""Characters of a name."""
QUERY: Final = 2_000
"""Characters of a filter."""
_BY, _QUERY = "by", "query"
"""Labels of the stream's head."""


class SavedView(msgspec.Struct, frozen=True, kw_only=True):
    """A filter with a name."""

    view: str
    """Its identifier."""
    name: str
    query: str
    """The filter, as it stands in an address."""


class SavedViews:
    """The saved views of one journal."""

    def __init__(self, journal: Journal, principal: str) -> None:
        self._journal = journal
        self._principal = principal

    # --- queries

    async def of(self, by: str = "") -> list[SavedView]:
        """The views of one person, by name."""
        query = HeadQuery(kind=KIND, states=("kept",), labels={_BY: by or self._principal}, limit=MOST)
        views = [
            SavedView(view=head.stream.partition("/")[2], name=head.title, query=head.labels.get(_QUERY, ""))
            for head in await self._journal.heads(query)
        ]
        return sorted(views, key=lambda view: view.name.casefold())

    # --- commands

    async def save(self, name: str, query: str, *, by: str = "") -> SavedView:
        """Keep a filter under a name; an older one of the same name is replaced. Raises UsageError."""
        by, name = by or self._principal, name.strip()
        if not 0 < len(name) <= NAME:
            raise UsageError(f"A name has 1 to {NAME} characters.", code=Code.INVALID_INPUT)
        if len(query) > QUERY:
            raise UsageError(f"A filter has at most {QUERY} characters.", code=Code.INVALID_INPUT)
        known = await self.of(by)
        same = [saved for saved in known if saved.name == name]
        if len(known) - len(same) >= MOST:
            remedy = "Remove one of them first."
            raise UsageError(f"There are {MOST} saved views already.", code=Code.INVALID_INPUT, remedy=remedy)
        view = new_id(KIND)
        patch = HeadPatch(state="kept", title=name, labels={_BY: by, _QUERY: query})
        await self._journal.create(f"{KIND}/{view}", KIND, ViewSaved(name=name, query=query, by=by), patch=patch)
        for double in same:
            await self.remove(double.view, by=by)
        return SavedView(view=view, name=name, query=query)

    async def remove(self, view: str, *, by: str = "") -> None:
        """Keep a view no more. Raises NotFoundError if there is none, or it is someone else's."""
        stream, by = f"{KIND}/{view}", by or self._principal
        head = await self._journal.head(stream)
        patch = HeadPatch(state="removed", closed=True)
        try:
            if head is not None and not head.closed and head.labels.get(_BY) == by:
                writer = self._journal.writer(stream, KIND, head)
                await self._journal.append(writer, ViewRemoved(by=by), synced=True, patch=patch)
                return
        except AppendConflictError:
            pass  # it was removed at the same moment
        raise NotFoundError(f"There is no saved view {view!r:.80}.", code=Code.STREAM_NOT_FOUND)
