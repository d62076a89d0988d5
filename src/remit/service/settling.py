"""Waits until a job has nothing left to do by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.jobs.state import ENDED, History, stream_of
from remit.service.rows import open_waits

if TYPE_CHECKING:
    from remit.journal.journal import Journal

_BY_ITSELF: Final = frozenset({"timer"})
"""Waits that end without anything from outside."""


async def settled(journal: Journal, job: str) -> None:
    """Return once a job has ended, or waits for something that only comes from outside."""
    mark = 0
    while True:
        mark = await journal.heads_changed(mark)
        head = await journal.head(stream_of(job))
        if head is None or head.state in ENDED:
            return
        if head.state == "waiting":
            waits = open_waits(History(await journal.read(head.stream)))
            if waits and not all(wait.type in _BY_ITSELF for wait in waits):
                return
