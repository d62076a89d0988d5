"""The one writer of a stream (rule 4): it knows the head, chains what it writes, and falls silent when superseded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from remit.errors import AppendConflictError, ChainBrokenError, JournalError
from remit.journal.event import NO_PATCH, UNSET, Append, Event, HeadPatch, StreamHead, link, root, verify
from remit.journal.kinds import Payload, encode
from remit.journal.seals import SealCoverage, Sealer, Seals, covered

if TYPE_CHECKING:
    from remit.clock import Clock


class Draft(msgspec.Struct, frozen=True):
    """What a writer is going to append: encoded, so that nothing can fail any more, but without its place yet."""

    writer: StreamWriter
    events: tuple[tuple[str, bytes], ...]
    """Kind and payload of each."""
    patch: HeadPatch
    expect_wakes: int | None
    payloads: tuple[Payload, ...] = ()
    """The payloads themselves if their values have to be salted before they are chained."""


def copy_error(error: JournalError) -> JournalError:
    """A failure that is raised more than once: each time a copy, for an error keeps whatever it passed through."""
    fresh = copy(error)
    if error.__cause__ is not None:
        fresh.__cause__ = error.__cause__
    return fresh


class StreamWriter:
    """Turns payloads into chained events that follow each other without a gap.

    It computes sequence and hash ahead of the storage, so that many appends can be under way at once; the storage
    compares them with the head in the transaction that writes. After one refusal or failure every later append raises
    that error: what was written before stays, what came after was never there. It goes on from `head`; without one, the
    first append creates the stream. `seals` seal what it writes. A head whose seal does not hold is not gone on from:
    every append of events raises that `doubt`.
    """

    __slots__ = (
        *(
            "__weakref__",
            "_clock",
            "_covered",
            "_hash",
            "_recorded_sealer",
            "_sealer",
            "_seals",
            "announced",
            "announced_before",
        ),
        *("began", "doubt", "epoch", "failure", "kind", "root", "seq", "stream", "subject", "wakes"),
    )

    def __init__(
        self, stream: str, kind: str, clock: Clock, head: StreamHead | None = None, seals: Seals | None = None
    ) -> None:
        self.stream = stream
        self.root = "/".join(stream.split("/", 2)[:2])
        """The root that names of streams that are written together have in common."""
        self.subject = head.subject if head else ""
        """Whom the stream's values are about; they are salted then."""
        self.kind = kind
        self.seq = head.seq if head else 0
        self.began = self.seq
        """The seq it goes on from."""
        self.announced: dict[str, int] = {}
        """Calls that were announced through it, by tool; the gateway counts them."""
        self.announced_before: dict[str, int] | None = None
        """Those that stood in the stream before; None: not read."""
        self.epoch = head.epoch if head else 0
        self.wakes = head.wakes if head else 0
        self.failure: JournalError | None = None
        self._hash = head.hash if head else root(stream)
        self._clock = clock
        self._seals = seals
        self.doubt = seals.doubt(head) if seals is not None and head is not None else None
        seal = head.seal if head is not None and self.doubt is not None else b""
        self._recorded_sealer: Sealer | None = (lambda _: seal) if seal else None
        """The seal that a head in doubt keeps: it is not made better by letting go of its lease."""
        self._covered = covered(head) if head is not None else SealCoverage(kind)
        self._sealer: Sealer | None = None

    def draft(self, *payloads: Payload, patch: HeadPatch = NO_PATCH, expect_wakes: int | None = None) -> Draft:
        """Encode payloads for `Journal.commit`, which gives them their place; a draft may be kept, or dropped."""
        if self.seq == 0 and patch.subject is not UNSET:
            self.subject = patch.subject
        events = tuple([(payload.KIND, encode(payload)) for payload in payloads])
        if not self.subject:
            return Draft(self, events, patch, expect_wakes)
        if self.seq == 0:
            patch = replace(patch, subject=self.subject)
        return Draft(self, events, patch, expect_wakes, payloads)

    def stage(self, *payloads: Payload, patch: HeadPatch = NO_PATCH, expect_wakes: int | None = None) -> Append:
        """Chain payloads onto the stream. The append must be submitted before the next one of this writer."""
        return self.chain(self.draft(*payloads, patch=patch, expect_wakes=expect_wakes))

    def chain(self, draft: Draft) -> Append:
        """Give a draft its place. The append must be submitted before this writer's next one: await nothing between."""
        if self.failure is not None:
            raise copy_error(self.failure)
        if self._seals is not None and (self._sealer is None or draft.patch is not NO_PATCH):
            self._take_in(draft, self._seals)
        at, stream, expect_seq, expect_hash = self._clock.now(), self.stream, self.seq, self._hash
        seq, previous, events = expect_seq, expect_hash, []
        for kind, data in draft.events:
            seq += 1
            previous = link(previous, seq, at, kind, data)
            events.append(Event(stream, seq, kind, at, data, previous))
        self.seq, self._hash = seq, previous
        return Append(
            stream=stream,
            kind=self.kind,
            expect_seq=expect_seq,
            expect_hash=expect_hash,
            epoch=self.epoch,
            events=tuple(events),
            at=at,
            patch=draft.patch,
            expect_wakes=draft.expect_wakes,
            sealer=self._sealer or self._recorded_sealer,
        )

    def _take_in(self, draft: Draft, seals: Seals) -> None:
        """Return what the next seals cover. Raises the doubt about the head."""
        if self.doubt is None:
            fields = self._covered.patched(draft.patch, created=self.seq == 0)
            self._sealer, self._covered = seals.over(fields), fields
        elif draft.events:
            raise copy_error(self.doubt)

    def follows(self, events: Sequence[Event]) -> None:
        """Raise ChainBrokenError unless these events, the whole stream, are those that it goes on from (rule 14)."""
        if self.doubt is not None:
            raise copy_error(self.doubt)
        if verify(self.stream, events) != (self.seq, self._hash):
            msg = f"{self.stream}: its events do not match its head"
            raise ChainBrokenError(msg, remedy="Run `remit verify`, and restore the journal from a backup.")

    def fail(self, error: JournalError) -> None:
        """Refuse everything from now on; the first error stays."""
        if self.failure is None:
            self.failure = error

    def supersede(self) -> None:
        """Fall silent because someone else took the stream over."""
        self.fail(AppendConflictError(f"{self.stream}: another writer took over the stream"))


def fail_all(writers: Sequence[StreamWriter]) -> Callable[[JournalError], None]:
    """Return what fails each of these writers."""

    def fail(error: JournalError) -> None:
        for writer in writers:
            writer.fail(error)

    return fail
