"""Pages of the whole journal: how far one reaches, whatever the backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from remit.journal.event import Event, Placed, Scanned

_SPAN: Final = 10_000
"""Positions looked at for one page of some kinds, so that rare ones do not hold up a reader."""


def reach(after: int, settled: int, kinds: Sequence[str]) -> int:
    """The last position that a page looks at."""
    return max(after, min(settled, after + _SPAN) if kinds else settled)


def page(rows: Sequence[Sequence[Any]], limit: int, *, reached: int, newest: int) -> Scanned:
    """The page made of rows of position, stream, seq, kind, at, data and hash."""
    events = tuple([Placed(row[0], Event(*row[1:])) for row in rows])
    position = events[-1].position if len(events) == limit else reached
    return Scanned(events, position, more=position < newest)
