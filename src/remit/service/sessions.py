"""Sessions: calls from outside any job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.journal.event import HeadQuery
from remit.service.heads import SESSION
from remit.service.views import SessionRow, session_row

if TYPE_CHECKING:
    from remit.journal.journal import Journal


class Sessions:
    """The sessions of one journal."""

    def __init__(self, journal: Journal) -> None:
        """Look at `journal`."""
        self._journal = journal

    # --- queries

    async def rows(self, *, limit: int = 20) -> list[SessionRow]:
        """Sessions, newest first."""
        return [session_row(head) for head in await self._journal.heads(HeadQuery(kind=SESSION, limit=limit))]
