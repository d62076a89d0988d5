"""What a journal's storage holds, as plain Python values: every process of a simulation has its hands on one shelf.

Each method is one transaction: it happens whole or not at all, and nothing happens between its beginning and its end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import groupby, zip_longest
from typing import Any

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.event import (
    NO_PATCH,
    OPEN_STATES,
    Append,
    Blob,
    Commit,
    Cut,
    Event,
    HeadPatch,
    HeadQuery,
    JournalFold,
    Lease,
    LeaseClaim,
    Placed,
    Scanned,
    StreamHead,
)
from remit.journal.labels import Bound, measure
from remit.journal.references import names_in
from remit.journal.retirement import LIVE, STREAM, busy, refusal

_MAX_INT = 2**63
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_PATCHED = ("state", "due_at", "priority", "closed", "route", "share", "subject", "title", "labels")


class Shelf:
    """Streams, heads and blobs; what is written here outlives every process."""

    def __init__(self) -> None:
        self.heads: dict[str, StreamHead] = {}
        self.events: dict[str, list[Event]] = {}
        self.order: list[Event] = []
        """Of all streams, as they were written."""
        self.begins: dict[str, int] = {}
        """By stream that was pruned, the number of its stub."""
        self.blobs: dict[str, Blob] = {}
        self.folds: dict[str, JournalFold] = {}
        self.watchers: list[Callable[[], None]] = []
        """Told of every write, one for each living process."""
        self.version = 1
        """Grows with every write of anybody."""
        self.heads_version = 1
        """Grows with those that change more of a head than its newest event."""

    # --- writing

    def write(self, commit: Commit) -> JournalError | None:
        """One commit; why it was refused, if it was."""
        unfit = next((e for a in commit.appends for e in a.events if not -_MAX_INT <= e.at < _MAX_INT), None)
        if unfit is not None or any(_unfit(append.patch) for append in commit.appends):
            return JournalError("a number is too large", code=Code.RECORD_INVALID)
        refused = None if commit.aside else self.retired()
        if commit.unleased:
            held = [
                h for h in self.heads.values() if not h.closed and h.lease_owner and (h.lease_until or 0) > commit.at
            ]
            refused = busy(len(held), held[0].stream) if held else None
        if refused is not None:
            return refused
        heads = dict[str, StreamHead]()
        for append in commit.appends:
            found = heads.get(append.stream) or self.heads.get(append.stream)
            changed = self.advanced(append, found)
            if changed is None:
                return AppendConflictError(f"{append.stream}: the head is not what the writer expected")
            heads[append.stream] = changed
        self.heads.update(heads)
        for append in commit.appends:
            self.events.setdefault(append.stream, []).extend(append.events)
            self.order += append.events
        for blob in commit.blobs:
            self._keep(blob)
        for stream in commit.wakes:
            self._wake(stream, commit.at)
        self.version += 1
        if commit.wakes or any(append.patch != NO_PATCH or append.expect_seq == 0 for append in commit.appends):
            self.heads_version = self.version
        return None

    def cut(self, cut: Cut) -> bool:
        """Put stubs in the place of older events."""
        if not cut.aside:
            self._refuse_retired()
        if any(not cut.names.isdisjoint(names_in(event.data)) for event in self.order[cut.position :]):
            return False
        error = self.write(Commit(appends=cut.appends, at=cut.appends[0].at, aside=True))
        if error is not None:
            raise error
        for append in cut.appends:
            self.events[append.stream] = list(append.events)
            self.begins[append.stream] = append.events[0].seq
        for digest in cut.blobs:
            self.blobs.pop(digest, None)
        return True

    def retired(self) -> JournalError | None:
        """Why the journal runs no jobs."""
        head = self.heads.get(STREAM)
        return None if head is None or head.state == LIVE else refusal("shelf", head.state, head.title)

    def _refuse_retired(self) -> None:
        if (refused := self.retired()) is not None:
            raise refused

    def noticed(self) -> None:
        """A waiter for a change looks again."""
        self.version += 1
        self.heads_version = self.version

    def advanced(self, append: Append, found: StreamHead | None) -> StreamHead | None:
        """The head after an append; None where it was computed from another one."""
        if found is None:
            return _created(append) if append.expect_seq == 0 and append.events else None
        expected = (append.expect_seq, append.epoch, append.expect_hash)
        if (found.seq, found.epoch, found.hash) != expected or append.expect_wakes not in {None, found.wakes}:
            return None
        changes: dict[str, Any] = {"updated_at": append.at, **_changes(append.patch), "subject": found.subject}
        changes["seal"] = append.seal
        if append.events:
            changes |= {"seq": append.events[-1].seq, "hash": append.events[-1].hash}
        if append.patch.release:
            changes |= {"lease_owner": None, "lease_until": None}
        return msgspec.structs.replace(found, **changes)

    def _keep(self, blob: Blob) -> None:
        known = self.blobs.get(blob.digest)
        erased = known is not None and bool(known.data) and not blob.data
        kept = known is not None and not known.data
        longer = known is None or (known.until is not None and (blob.until is None or blob.until > known.until))
        if erased or (longer and not kept):
            self.blobs[blob.digest] = blob

    def _wake(self, stream: str, at: int) -> None:
        head = self.heads.get(stream)
        if head is not None and not head.closed:
            due = head.due_at
            if head.lease_owner is None:
                due = at if due is None else min(due, at)
            self.heads[stream] = msgspec.structs.replace(head, wakes=head.wakes + 1, due_at=due)

    def kept_folds(self, name: str, parts: tuple[str, ...]) -> list[JournalFold]:
        """A fold and some of its parts."""
        names = {name, *(f"{name}/{part}" for part in parts)}
        return [self.folds[one] for one in sorted(names & self.folds.keys())]

    def keep_folds(self, folds: Sequence[JournalFold], before: int) -> bool:
        """Replace folds, if the first is still the one that they continue."""
        known = self.folds.get(folds[0].name)
        if (known.position if known else 0) != before:
            return False
        self.folds |= {one.name: one for one in folds}
        return True

    def prune(self, now: int, limit: int) -> int:
        """Erase blobs whose time is over; how many."""
        over = [blob for blob in self.blobs.values() if blob.until is not None and blob.until <= now]
        gone = sorted(over, key=lambda blob: blob.until or 0)[:limit]
        for blob in gone:
            del self.blobs[blob.digest]
        return len(gone)

    # --- leases

    def claim(self, claim: LeaseClaim) -> list[Lease]:
        """Lease due streams nobody holds."""
        self._refuse_retired()
        heads, turn = self._waiting(claim)
        return [self._lease(head, claim, turn) for head in heads]

    def due(self, claim: LeaseClaim) -> list[StreamHead]:
        """What a claim would get."""
        return self._waiting(claim)[0]

    def _waiting(self, claim: LeaseClaim) -> tuple[list[StreamHead], str]:
        """What a claim would get, and the share whose turn was last."""
        order = {stream: place for place, stream in enumerate(self.heads)}
        due = [
            head
            for head in self.heads.values()
            if head.kind == claim.kind
            and head.due_at is not None
            and head.due_at <= claim.now
            and not head.closed
            and (head.lease_owner is None or (head.lease_until or 0) <= claim.now)
            and (not claim.states or head.state in claim.states)
            and _served(head, claim.routes)
        ]
        due.sort(key=lambda head: (-head.priority, head.due_at, order[head.stream]))
        heads, turn = list[StreamHead](), claim.after
        for _, group in groupby(due, key=lambda head: head.priority):
            here, room = list(group), claim.limit - len(heads)
            if len(here) > room > 0:
                here, turn = _in_turn(here, room, turn)
            heads += here[:room]
        return heads, turn

    def acquire(self, stream: str, claim: LeaseClaim, over: str | None) -> list[Lease]:
        """Lease one stream unless somebody else's lease runs."""
        self._refuse_retired()
        head = self.heads.get(stream)
        if head is None or head.closed:
            return []
        free = head.lease_owner is None or (head.lease_until or 0) <= claim.now or head.lease_owner == over
        return [self._lease(head, claim)] if free else []

    def _lease(self, found: StreamHead, claim: LeaseClaim, turn: str = "") -> Lease:
        now = msgspec.structs.replace(
            found,
            epoch=found.epoch + 1,
            lease_owner=claim.owner,
            lease_until=claim.lease_until,
            due_at=claim.lease_until,
            state=(claim.state if found.state in OPEN_STATES else None) or found.state,
        )
        self.heads[found.stream] = now
        self.noticed()
        return Lease(
            head=now,
            previous_state=found.state,
            previous_owner=found.lease_owner,
            previous_due=found.due_at,
            turn=turn,
        )

    def give_back(self, leases: Sequence[Lease], now: int) -> None:
        """Undo leases that nobody got to hear of."""
        for lease in leases:
            head = self.heads[lease.head.stream]
            if head.epoch == lease.head.epoch:
                due = now if head.wakes != lease.head.wakes or lease.previous_owner else lease.previous_due
                free: dict[str, Any] = {"lease_owner": None, "lease_until": None, "due_at": due}
                self.heads[head.stream] = msgspec.structs.replace(head, state=lease.previous_state, **free)
        self.noticed()

    def renew(self, leases: Sequence[tuple[str, int]], until: int) -> list[str]:
        """Prolong leases; the streams still held."""
        held = []
        for stream, epoch in leases:
            head = self.heads.get(stream)
            if head is not None and head.epoch == epoch and head.lease_owner is not None and not head.closed:
                self.heads[stream] = msgspec.structs.replace(head, lease_until=until, due_at=until)
                held.append(stream)
        return held

    # --- reading

    def listed(self, query: HeadQuery) -> list[StreamHead]:
        """Heads that match, newest stream first."""
        found = list(reversed(self.heads.values()))
        if query.before is not None:
            names = [head.stream for head in found]
            found = found[names.index(query.before) + 1 :] if query.before in names else []
        return [head for head in found if _matches(head, query)][: query.limit]

    def scanned(self, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
        """Events of all streams after a position, which is an index here."""
        there = [(place, e) for place, e in enumerate(self.order, 1) if e.seq >= self.begins.get(e.stream, 0)]
        found = [Placed(place, event) for place, event in there if place > after]
        wanted = tuple([placed for placed in found if not kinds or placed.event.kind in kinds][:limit])
        position = wanted[-1].position if len(wanted) == limit else max(after, len(self.order))
        return Scanned(wanted, position, more=position < len(self.order))

    def held(self, kind: str) -> list[StreamHead]:
        """Heads that somebody holds."""
        found = [h for h in self.heads.values() if h.kind == kind and h.lease_owner is not None and not h.closed]
        return sorted(found, key=lambda head: head.lease_until or 0)

    def routes(self, kind: str) -> list[str]:
        """Routes of what is due some time."""
        return sorted(
            {h.route for h in self.heads.values() if h.kind == kind and not h.closed and h.due_at is not None}
        )

    def next_due(self, kind: str, routes: tuple[str, ...]) -> int | None:
        """The earliest due time of a kind."""
        open_ones = [h for h in self.heads.values() if h.kind == kind and not h.closed and _served(h, routes)]
        return min((head.due_at for head in open_ones if head.due_at is not None), default=None)


def _created(append: Append) -> StreamHead:
    fresh: dict[str, Any] = {"state": "", "due_at": None, "priority": 0, "closed": False, "route": ""}
    fresh |= {"subject": "", "title": "", "labels": {}}
    last = append.events[-1]
    return StreamHead(
        stream=append.stream,
        kind=append.kind,
        seq=last.seq,
        epoch=0,
        hash=last.hash,
        lease_owner=None,
        lease_until=None,
        wakes=0,
        created_at=append.at,
        updated_at=append.at,
        seal=append.seal,
        **(fresh | _changes(append.patch)),
    )


def _changes(patch: HeadPatch) -> dict[str, Any]:
    return {name: value for name in _PATCHED if (value := getattr(patch, name)) is not msgspec.UNSET}


def _served(head: StreamHead, routes: tuple[str, ...]) -> bool:
    return not routes or head.route in {"", *routes}


def _in_turn(due: list[StreamHead], room: int, after: str) -> tuple[list[StreamHead], str]:
    """Streams of which there are more than room, one of each share in turn; and the share whose turn was last."""
    names = sorted({head.share for head in due}, key=lambda share: (share <= after, share))
    queues = [[head for head in due if head.share == share] for share in names]
    turns = [head for turn in zip_longest(*queues) for head in turn if head is not None]
    return turns, names[min(room, len(names)) - 1]


def _unfit(patch: HeadPatch) -> bool:
    numbers = [value for value in (patch.due_at, patch.priority) if isinstance(value, int)]
    if any(not -_MAX_INT <= number < _MAX_INT for number in numbers):
        return True
    return not all(isinstance(value, str | msgspec.UnsetType) for value in (patch.state, patch.route, patch.title))


def _matches(head: StreamHead, query: HeadQuery) -> bool:
    return (
        query.kind in {None, head.kind}
        and (not query.states or head.state in query.states)
        and head.stream.startswith(query.prefix)
        and query.subject in {"", head.subject}
        and query.labels.items() <= head.labels.items()
        and all(_within(head.labels.get(bound.key), bound) for bound in query.bounds)
        and query.needle in head.title.encode().lower().decode()
        and head.created_at >= query.since
    )


def _within(value: str | None, bound: Bound) -> bool:
    size = measure(value) if value is not None else None
    return size is not None and size.type == bound.type and _COMPARE[bound.operator](size.size, bound.size)
