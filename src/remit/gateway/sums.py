"""The use of models, kept as sums, so that no question and no page adds up the journal again.

The sums are a fold over events of all streams, by day (UTC), stream, principal and model. They are an index (rule 14):
made of chained events alone, made again from the first one where they are missing or do not belong to the journal, and
compared with the events by `remit verify`. What is new is read from the place that the last look came to. From time to
time the sums are kept, with that place, in one transaction; a process that dies between leaves the sums of before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from remit.clock import DAY
from remit.gateway.budget import Spent
from remit.journal.event import Event, JournalFold
from remit.journal.kinds import CommandCommitted, CommandStarted, JobForked, StreamPruned, decode
from remit.journal.scan import event_at, every_page
from remit.journal.values import stub_of

if TYPE_CHECKING:
    from remit.journal.event import Placed
    from remit.journal.journal import Journal

NAME: Final = "usage"
_VERSION: Final = 2
_KINDS: Final = (CommandStarted.KIND, CommandCommitted.KIND, JobForked.KIND)
_PAGE: Final = 10_000
_NEW_EVENTS: Final = 2_000
_NEW_POSITIONS: Final = 50_000
"""After so many events that count, or positions of any, the sums are kept."""
_OPEN_DAYS: Final = 2
_OPEN_POSITIONS: Final = 1_000_000
"""Days and positions after which no answer is expected any more; what was reserved for it stays counted."""
_COPIED: Final = 10_000
"""Positions within which a retry has copied what it takes over, besides as many as it takes."""
_HELD: Final = 2
"""Days that stay in memory."""


class Sum(msgspec.Struct, array_like=True):
    """What one stream took on one day."""

    stream: str
    principal: str
    model: str
    spent: Spent = msgspec.field(default_factory=Spent)
    budgets: tuple[str, ...] = ()
    """The budgets that it counts for."""


class _Open(msgspec.Struct, array_like=True):
    """A question whose answer is not recorded yet."""

    day: int
    stream: str
    principal: str
    model: str
    reserved_tokens: int
    reserved_cost: float
    position: int
    budgets: tuple[str, ...] = ()


class _Copy(msgspec.Struct, array_like=True):
    """Events that a retry takes over: the job that made them counts them."""

    until: int
    position: int


class _State(msgspec.Struct):
    """Where the fold stands."""

    version: int = _VERSION
    last: tuple[int, str, int, str] | None = None
    """Position, stream, seq and chain value of the last event that was taken."""
    days: list[int] = msgspec.field(default_factory=list)
    open: dict[str, _Open] = msgspec.field(default_factory=dict)
    copies: dict[str, _Copy] = msgspec.field(default_factory=dict)


class _Day:
    """The sums of one day."""

    def __init__(self, sums: Iterable[Sum] = ()) -> None:
        self.sums: dict[tuple[str, str, str, tuple[str, ...]], Sum] = {}
        self.principals: dict[str, Spent] = {}
        self.budgets: dict[str, Spent] = {}
        for row in sums:
            self.sums[row.stream, row.principal, row.model, row.budgets] = row
            for spent in self._shared(row.principal, row.budgets):
                spent.add(row.spent)

    def of(self, stream: str, principal: str, model: str, budgets: tuple[str, ...]) -> Iterable[Spent]:
        """The sums of a stream, of its principal, and of budgets."""
        row = self.sums.get((stream, principal, model, budgets))
        if row is None:
            row = self.sums[stream, principal, model, budgets] = Sum(stream, principal, model, budgets=budgets)
        return row.spent, *self._shared(principal, budgets)

    def _shared(self, principal: str, budgets: tuple[str, ...]) -> Iterable[Spent]:
        yield self.principals.setdefault(principal, Spent())
        for budget in budgets:
            yield self.budgets.setdefault(budget, Spent())


class ModelSums:
    """The sums of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self.invocation_ids: set[str] | None = None
        """Identifiers of the questions that were met, if a set is put here."""
        self._begin()
        self._loaded = self._spoilt = False

    def _begin(self) -> None:
        self._state, self._position, self._saved = _State(), 0, 0
        self._days: dict[int, _Day] = {}
        self._past: dict[int, dict[str, Spent]] = {}
        """The sums of budgets of days that do not stay in memory."""
        self._changed: set[int] = set()
        self._new = 0

    # --- looking

    async def refresh(self, days: Iterable[int] = (), budgeted: Iterable[int] = ()) -> None:
        """Take what is new in the journal; the sums of these days (since the Unix epoch) are at hand then.

        Of the `budgeted` days only the sums of budgets are.
        """
        wanted, past = set(days), set(budgeted)
        async with self._lock:
            wanted |= past - self._past.keys()
            while not await self._refreshed(wanted):
                self._loaded = False  # another process kept sums of its own meanwhile

    @property
    def position(self) -> int:
        """Place in the journal that the last look came to."""
        return self._position

    @property
    def days(self) -> list[int]:
        """Days with sums, as far as the last look came."""
        return self._state.days

    def of(self, day: int) -> list[Sum]:
        """The sums of a day that was refreshed."""
        sums_of_day = self._days.get(day)
        return list(sums_of_day.sums.values()) if sums_of_day is not None else []

    def spent(self, day: int, principal: str) -> Spent:
        """Return what a principal took on a day that was refreshed."""
        sums_of_day = self._days.get(day)
        return sums_of_day.principals.get(principal, _NOTHING) if sums_of_day is not None else _NOTHING

    def of_budget(self, key: str, days: Iterable[int]) -> Spent:
        """Return what counts for a budget on days that were refreshed."""
        total = Spent()
        for sums in self._budgets(days):
            total.add(sums.get(key, _NOTHING))
        return total

    def budget_keys(self, days: Iterable[int]) -> set[str]:
        """Return the budgets that something counts for on days that were refreshed."""
        return {key for sums in self._budgets(days) for key in sums}

    def _budgets(self, days: Iterable[int]) -> Iterable[dict[str, Spent]]:
        for day in days:
            at_hand = self._days.get(day)
            yield at_hand.budgets if at_hand is not None else self._past.get(day, {})

    async def keep(self) -> None:
        """Keep what the journal says now, as before events are pruned: their sums stay."""
        async with self._lock:
            while not (await self._refreshed(set()) and await self._keep(at_once=True)):
                self._loaded = False

    async def differing(self) -> list[int]:
        """Days whose kept sums are not those of the events; empty where none are kept."""
        model_sums = ModelSums(self._journal)
        await model_sums._load()
        while not await model_sums._have(model_sums._state.days):  # another process keeps sums at this moment
            if model_sums._spoilt:
                return model_sums._state.days
            await model_sums._load()
        if not model_sums._position:
            return []
        again = ModelSums(self._journal)
        again._loaded = True
        await again._read(until=model_sums._saved)
        days, pruned = sorted({*model_sums._state.days, *again._state.days}), await self._pruned()
        return [day for day in days if model_sums._encoded(day, pruned) != again._encoded(day, pruned)]

    async def _pruned(self) -> set[str]:
        """The streams whose events cannot be added up any more; what they took stays in the sums that are kept."""
        pages = every_page(self._journal, 0, (StreamPruned.KIND,), _PAGE)
        return {placed.event.stream async for page in pages for placed in page.events}

    async def _refreshed(self, wanted: set[int]) -> bool:
        if not self._loaded:
            await self._load()
        return await self._read() and await self._have(wanted)

    async def _read(self, until: int | None = None) -> bool:
        """Fold what is new, up to a position; False if that cannot go on from the sums that are kept."""
        more = True
        while more:
            page = await self._journal.scan(self._position, _KINDS, _PAGE)
            events = [placed for placed in page.events if until is None or placed.position <= until]
            taken = [(placed, decode(placed.event.kind, placed.event.data)) for placed in events]
            if not await self._have({self._day_of(placed.event, payload) for placed, payload in taken}):
                return False
            for placed, payload in taken:
                self._take(placed, payload)
            more = page.more and page.position > self._position and len(events) == len(page.events)
            self._new += len(events)
            self._position = page.position
            if until is None and not await self._keep():
                return False
        return True

    def _day_of(self, event: Event, payload: object) -> int:
        if isinstance(payload, CommandCommitted) and payload.invocation_id in self._state.open:
            return self._state.open[payload.invocation_id].day
        return event.at // DAY

    # --- folding

    def _take(self, placed: Placed, payload: object) -> None:
        event, state = placed.event, self._state
        state.last = (placed.position, event.stream, event.seq, event.hash.hex())
        copy = state.copies.get(event.stream)
        if isinstance(payload, JobForked):
            state.copies = {
                stream: copied for stream, copied in state.copies.items() if copied.position + _COPIED > placed.position
            }
            state.copies[event.stream] = _Copy(event.seq + payload.taken, placed.position + payload.taken)
        elif copy is not None and event.seq <= copy.until:
            return
        elif isinstance(payload, CommandStarted):
            self._started(placed, payload)
        elif isinstance(payload, CommandCommitted):
            self._committed(payload)

    def _started(self, placed: Placed, payload: CommandStarted) -> None:
        event = placed.event
        day, key = event.at // DAY, (event.stream, payload.principal, payload.name)
        budgets = payload.budgets
        if day not in self._days:
            self._days[day] = _Day()
            self._state.days.append(day)
        for spent in self._days[day].of(*key, budgets):
            spent.reserve(payload.reserved_tokens, payload.reserved_cost)
        self._changed.add(day)
        reserved = payload.reserved_tokens, payload.reserved_cost
        self._state.open[payload.invocation_id] = _Open(day, *key, *reserved, placed.position, budgets)
        if self.invocation_ids is not None:
            self.invocation_ids.add(payload.invocation_id)

    def _committed(self, payload: CommandCommitted) -> None:
        call = self._state.open.pop(payload.invocation_id, None)
        if call is None:
            return
        for spent in self._days[call.day].of(call.stream, call.principal, call.model, call.budgets):
            spent.settle(call, payload)
        self._changed.add(call.day)

    # --- keeping

    async def _load(self) -> None:
        """Go on from the sums that are kept, if they are this journal's; else from the start."""
        self._begin()
        self._loaded = True
        for fold in await self._journal.folds.read(NAME):
            self._saved = fold.position
            try:
                state = msgspec.json.decode(fold.data, type=_State)
            except msgspec.DecodeError:
                continue
            if state.version == _VERSION and not self._spoilt and await self._belongs(state):
                self._state, self._position = state, fold.position

    async def _belongs(self, state: _State) -> bool:
        if state.last is None:
            return True
        position, stream, seq, chained = state.last
        event = await event_at(self._journal, position)
        if event is not None and (event.stream, event.seq, event.hash.hex()) == (stream, seq, chained):
            return True
        stub = stub_of(await self._journal.left(stream))
        return stub is not None and (stub.events > seq or (stub.events == seq and stub.hash == chained))

    async def _have(self, days: Iterable[int]) -> bool:
        """Load days that are kept and not at hand; False if what is kept is not what this fold goes on from.

        Sums that cannot be read are `spoilt`, and made again.
        """
        missing = {_part(day): day for day in days if day in self._state.days and day not in self._days}
        if not missing:
            return True
        folds = {fold.name: fold for fold in await self._journal.folds.read(NAME, missing)}
        if folds.pop(NAME, JournalFold(NAME, 0, b"")).position != self._saved:
            return False
        try:
            folds_read = {day: _sums(folds[f"{NAME}/{part}"].data) for part, day in missing.items()}
        except (KeyError, msgspec.DecodeError):
            self._spoilt = True
            return False
        self._days |= {day: _Day(sums) for day, sums in folds_read.items()}
        for day in folds_read:
            self._past.pop(day, None)
        return True

    async def _keep(self, *, at_once: bool = False) -> bool:
        """Keep the sums if there is much that is new; False if another process kept others meanwhile."""
        if not at_once and self._new < _NEW_EVENTS and self._position - self._saved < _NEW_POSITIONS:
            return True
        state = self._state
        day, position = max(state.days, default=0) - _OPEN_DAYS, self._position - _OPEN_POSITIONS
        state.open = {name: call for name, call in state.open.items() if call.day > day or call.position > position}
        folds = [JournalFold(NAME, self._position, msgspec.json.encode(state))]
        folds += [
            JournalFold(f"{NAME}/{_part(day)}", self._position, self._encoded(day)) for day in sorted(self._changed)
        ]
        is_kept = await self._journal.folds.keep_if_writable(folds, self._saved)
        if not is_kept:
            self._new = 0  # a process that may write keeps them
            return is_kept is None
        self._saved, self._new, self._spoilt = self._position, 0, False
        self._changed.clear()
        held = sorted(state.days)[-_HELD:]
        self._past |= {day: sums.budgets for day, sums in self._days.items() if day not in held}
        self._days = {day: sums for day, sums in self._days.items() if day in held}
        return True

    def _encoded(self, day: int, without: Container[str] = ()) -> bytes:
        day_sums = self._days.get(day)
        sums = [row for row in day_sums.sums.values() if row.stream not in without] if day_sums is not None else []
        return msgspec.json.encode(sorted(sums, key=_key))


_NOTHING: Final = Spent()
_sums: Final = msgspec.json.Decoder(list[Sum]).decode


def _key(total: Sum) -> tuple[str, str, str, tuple[str, ...]]:
    return total.stream, total.principal, total.model, total.budgets


def _part(day: int) -> str:
    return str(day)
