"""The index behind questions about a whole journal: counts of stretches of it, so that no question reads it again.

A stretch holds so many positions of the journal, what a fold of them counted, and what it had to know of the events
before. It never changes. A question adds up the stretches that lie within its time, and folds those again that do so in
part, with what is newer than all of them. Once events were pruned, all is read again. An index is made of chained
events alone (rule 14): it can be made again at any time, and what an answer says of an act is read from its event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.journal import kinds as k
from remit.journal.event import JournalFold
from remit.journal.scan import event_at, every_page
from remit.parts.audit.facts import AuditFacts, Counts, FactsState

if TYPE_CHECKING:
    from remit.journal.event import Placed
    from remit.journal.journal import Journal

NAME: Final = "audit"
_VERSION: Final = 3
STRETCH: Final = 20_000
"""Positions of a stretch."""
_PAGE: Final = 5_000
_FORGOTTEN: Final = 1_000_000
"""Positions after which the end of a call that only reads, or an answer, is waited for no more."""


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A stretch, in the list of all."""

    after: int
    """It begins behind this position."""
    last: int
    """Its last position."""
    since: int
    """The earliest moment in it, in microseconds since the Unix epoch."""
    until: int
    """The latest."""


class _List(msgspec.Struct, frozen=True):
    """The list of all stretches."""

    version: int
    stretches: list[_Row]
    state: msgspec.Raw
    """The knowledge about all of them, for the fold that goes on from there."""
    last: tuple[int, str, int, str]
    """Position, stream, seq and chain value of the last event."""


class _Stretch(msgspec.Struct, frozen=True):
    """What is kept of a stretch."""

    before: msgspec.Raw
    """The knowledge about the events before."""
    counts: Counts


class Sums(msgspec.Struct, frozen=True):
    """What was counted in a time."""

    counts: Counts
    state: FactsState
    """The knowledge about all events, at the end of the journal."""
    last: int
    """The last position that was looked at."""


class _SpoiltError(Exception):
    """A kept index cannot be read, or counts events that were pruned since."""


class AuditIndex:
    """The index of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def sums(self, since: int = 0, until: int | None = None) -> Sums:
        """Return what was recorded from `since` (µs) to before `until`. Raise JournalError."""
        is_spoilt = False
        while True:
            reading = _Reading(self._journal, since, until)
            try:
                if await reading.read(again=is_spoilt):
                    return await reading.sums()
            except _SpoiltError:
                is_spoilt = True

    async def sums_again(self, since: int, until: int | None, last: int) -> Sums:
        """Return the same from every event up to a position, and make the index again."""
        while True:
            reading = _Reading(self._journal, since, until, last)
            if await reading.read(again=True):
                return await reading.sums()


class _Reading:
    """One look at the journal."""

    def __init__(self, journal: Journal, since: int, until: int | None, most: int | None = None) -> None:
        self._journal = journal
        self._since, self._until, self._most = since, until, most
        self._rows: list[_Row] = []
        self._stretches: dict[int, _Stretch] = {}
        """Stretches that were read now, by the position behind which they begin."""
        self._state = FactsState()
        self._saved = self._indexed = 0
        """The positions up to which an index is kept, and up to which it is used."""
        self._last = (0, "", 0, "")

    async def read(self, *, again: bool) -> bool:
        """Read what is not kept, and keep it; False if another process kept it meanwhile."""
        for fold in await self._journal.folds.read(NAME):
            self._saved = fold.position
            if not again:
                await self._go_on(fold.data)
        fresh: list[Placed] = []
        async for page in every_page(self._journal, self._indexed, (), _PAGE):
            fresh += [event for event in page.events if self._most is None or event.position <= self._most]
            if len(fresh) >= STRETCH:
                self._fold(fresh)
                fresh = []
        are_gone = any(k.StreamPruned.KIND in stretch.counts.kinds for stretch in self._stretches.values())
        are_gone |= any(placed.event.kind == k.StreamPruned.KIND for placed in fresh)
        if are_gone and self._indexed:
            raise _SpoiltError
        is_kept = are_gone or await self._keep()
        if fresh:
            self._fold(fresh)
        return await self._keep() if are_gone else is_kept

    async def sums(self) -> Sums:
        """Return what was counted within the time."""
        counts = Counts()
        wanted = [row for row in self._rows if row.until >= self._since and not self._is_after(row.since)]
        missing = [str(row.after) for row in wanted if row.after not in self._stretches]
        folds = {fold.name: fold for fold in await self._journal.folds.read(NAME, missing)}
        for row in wanted:
            stretch = self._stretches.get(row.after) or _stretch_of(folds.get(f"{NAME}/{row.after}"))
            if row.since >= self._since and (self._until is None or row.until < self._until):
                counts.add(stretch.counts)
            else:
                counts.add(await self._counted(row, stretch))
        return Sums(counts, self._state, self._last[0])

    def _is_after(self, moment: int) -> bool:
        return self._until is not None and moment >= self._until

    async def _go_on(self, data: bytes) -> None:
        """Go on from what is kept, if it belongs to this journal."""
        try:
            list_read = msgspec.json.decode(data, type=_List)
            state = msgspec.json.decode(list_read.state, type=FactsState)
        except msgspec.DecodeError:
            return
        position, *identity = list_read.last
        event = await event_at(self._journal, position) if list_read.version == _VERSION else None
        if event is not None and [event.stream, event.seq, event.hash.hex()] == identity:
            self._rows, self._state, self._last, self._indexed = list_read.stretches, state, list_read.last, position

    def _fold(self, fresh: list[Placed]) -> None:
        before, facts = msgspec.json.encode(self._state), AuditFacts(self._state)
        for placed in fresh:
            facts.take(placed.position, placed.event)
        newest, moments = fresh[-1], [placed.event.at for placed in fresh]
        after = self._rows[-1].last if self._rows else 0
        self._rows.append(_Row(after, newest.position, min(moments), max(moments)))
        self._stretches[after] = _Stretch(msgspec.Raw(before), facts.counts)
        self._state.forget(newest.position - _FORGOTTEN)
        self._last = (newest.position, newest.event.stream, newest.event.seq, newest.event.hash.hex())

    async def _keep(self) -> bool:
        """Keep the stretches that were read; False if another process kept others meanwhile."""
        if not self._stretches:
            return True
        state = msgspec.Raw(msgspec.json.encode(self._state))
        list_written = _List(_VERSION, self._rows, state, self._last)
        position = self._last[0]
        folds = [JournalFold(NAME, position, msgspec.json.encode(list_written))]
        folds += [
            JournalFold(f"{NAME}/{after}", position, msgspec.json.encode(stretch))
            for after, stretch in self._stretches.items()
        ]
        return await self._journal.folds.keep_if_writable(folds, self._saved) is not False

    async def _counted(self, row: _Row, stretch: _Stretch) -> Counts:
        """Count what lies within the time, of a stretch that does so in part."""
        facts = AuditFacts(msgspec.json.decode(stretch.before, type=FactsState), self._since, self._until)
        async for page in every_page(self._journal, row.after, (), _PAGE):
            for placed in page.events:
                if placed.position <= row.last:
                    facts.take(placed.position, placed.event)
            if page.position >= row.last:
                break
        return facts.counts


_decode: Final = msgspec.json.Decoder(_Stretch).decode


def _stretch_of(fold: JournalFold | None) -> _Stretch:
    """Return a stretch that is kept. Raise _SpoiltError if it is not there, or cannot be read."""
    try:
        return _decode(fold.data if fold is not None else b"")
    except msgspec.DecodeError:
        raise _SpoiltError from None
