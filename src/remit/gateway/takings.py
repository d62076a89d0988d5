"""The parts taken of limits of rules, in streams of their own: `limit/rules/<key>`, one for each thing counted.

A call takes its part durably just before it is announced, under its idempotency key. The stream's head decides between
two workers that want the last one: only one append fits it. It is not the transaction of the announcement itself, since
an announcement that met another writer would silence its own job's stream. A crash in between costs nothing: the call
that is made again finds that it has taken its part; one that is never made again leaves one too many counted, not one
too few. A call that its job undid gives its part back, to the period that it was taken from. What cannot be proven
(rule 14) allows nothing: a stream that was changed, or that is shorter than it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError
from remit.gateway.outcome import Outcome, refused
from remit.journal.kinds import LimitReturned, LimitTaken, decode
from remit.journal.proven import ProvenStream

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.policy.limit import Limit

KIND: Final = "limit"
"""The kind of these streams."""
_ATTEMPTS: Final = 1_000
_MOST: Final = 1_000
"""Counts that are kept in memory."""


class LimitUnprovenError(ChainBrokenError):
    """The part taken of a limit cannot be proven, so what is left of it is unknown."""

    @property
    def outcome(self) -> Outcome:
        """The refusal of a call under that limit."""
        return replace(refused(self.code, self.message, self.remedy), status="blocked")


class LimitPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one call takes of one limit."""

    limit: Limit
    key: str
    bound: bool
    """Whether there must be room; if not, the rule has said already what becomes of calls beyond it."""
    taken: LimitTaken


class _Count:
    """The count of a stream, as far as it was read and proven."""

    def __init__(self, events: ProvenStream) -> None:
        self.events = events
        self.seq = 0
        self.least = 0
        """Events that the stream has at least, since this process appended them."""
        self.total = Decimal(0)
        self.by_intent: dict[str, Decimal] = {}

    def add(self, taken: LimitTaken) -> None:
        amount = Decimal(taken.amount)
        self.by_intent[taken.intent] = amount
        self.total += amount

    def remove(self, intent: str) -> None:
        self.total -= self.by_intent.pop(intent, 0)

    def without(self, intent: str) -> tuple[int, Decimal]:
        """Calls and their sum, without one of them."""
        own = self.by_intent.get(intent)
        return (len(self.by_intent), self.total) if own is None else (len(self.by_intent) - 1, self.total - own)


class Takings:
    """Reads the counts, and takes."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._counts: dict[str, _Count] = {}
        self._turn = asyncio.Lock()

    async def totals(self, keys: Iterable[str], intent: str) -> Mapping[str, tuple[int, Decimal]]:
        """Calls and their sum for each key, without the call of this intent, which may have been counted already.

        Raises LimitUnprovenError.
        """
        return {key: (await self._read(stream_of(key))).without(intent) for key in keys}

    async def take(self, parts: Sequence[LimitPart]) -> bool:
        """Take all parts of a call, or none; False if there is no room any more. Durable when this returns.

        Raises LimitUnprovenError.
        """
        async with self._turn:  # within this process; against others the head decides
            for _ in range(_ATTEMPTS):
                counts = [await self._read(stream_of(part.key)) for part in parts]
                wanted = [
                    (part, count)
                    for part, count in zip(parts, counts, strict=True)
                    if part.taken.intent not in count.by_intent
                ]
                if not all(_fits(part, count) for part, count in wanted if part.bound):
                    return False
                if not wanted or await self._append(wanted):
                    return True
        return False

    async def _append(self, wanted: Sequence[tuple[LimitPart, _Count]]) -> bool:
        """Return whether no other process was faster."""
        drafts = []
        for part, count in wanted:
            stream = stream_of(part.key)
            head = await self._journal.head(stream)
            known = head.seq if head else 0
            if known < max(count.seq, count.least):
                raise _shorter(part, max(count.seq, count.least), known)
            if known > count.seq:
                return False
            drafts.append(self._journal.writer(stream, KIND, head).draft(part.taken))
        try:
            await self._journal.commit(*drafts, synced=True)
        except AppendConflictError:
            return False
        for _, count in wanted:
            count.least = count.seq + 1
        return True

    async def give_back(self, stream: str, returned: LimitReturned) -> bool:
        """Count a call that was undone no more; False if it did not count. Durable when this returns.

        Raises LimitUnprovenError.
        """
        async with self._turn:
            for _ in range(_ATTEMPTS):
                count = await self._read(stream)
                if returned.intent not in count.by_intent:
                    return False
                head = await self._journal.head(stream)
                if head is None or head.seq != count.seq:
                    continue
                draft = self._journal.writer(stream, KIND, head).draft(returned)
                try:
                    await self._journal.commit(draft, synced=True)
                except AppendConflictError:
                    continue
                return True
        return False

    async def _read(self, stream: str) -> _Count:
        count = self._counts.get(stream)
        if count is None:
            if len(self._counts) >= _MOST:
                self._counts.clear()  # what is asked for again is read again
            count = self._counts[stream] = _Count(ProvenStream(self._journal, stream))
        try:
            events = await count.events.more()
        except ChainBrokenError as error:
            raise LimitUnprovenError(error.message, code=error.code, remedy=error.remedy) from error
        for event in events:
            if event.seq <= count.seq:
                continue  # another task was faster
            count.seq = event.seq
            payload = decode(event.kind, event.data)
            if isinstance(payload, LimitTaken):
                count.add(payload)
            elif isinstance(payload, LimitReturned):
                count.remove(payload.intent)
        return count


def _shorter(part: LimitPart, before: int, now: int) -> LimitUnprovenError:
    limit = f"the limit of {part.taken.rule_id} ({part.limit})"
    reason = f"what was taken of {limit} was removed: of {before} events {now} are left"
    return LimitUnprovenError(reason, code=Code.HEAD_MISSING, remedy="Look with `remit verify`, and restore a backup.")


def _fits(part: LimitPart, count: _Count) -> bool:
    return part.limit.room(len(count.by_intent), count.total, Decimal(part.taken.amount))


def stream_of(key: str) -> str:
    """Return the stream in which what has this key is counted."""
    return f"{KIND}/rules/{sha256(key.encode()).removeprefix('sha256:')}"
