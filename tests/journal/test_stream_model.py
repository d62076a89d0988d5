"""One stream, two writers, any interleaving: the journal does what a list with a counter would do."""

from __future__ import annotations

import apsw
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from remit.journal.event import NO_PATCH, Commit, HeadPatch, StreamHead, verify
from remit.journal.kinds import Payload, decode
from remit.journal.sqlite import queries
from remit.journal.sqlite.groups import GroupWriter
from remit.journal.sqlite.schema import migrate
from remit.journal.writer import StreamWriter
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import LEASE, note, terms

STREAM = "job/a"
WHO = st.sampled_from([0, 1])


class OneStream(RuleBasedStateMachine):
    """The model: what was accepted, who may write, how often it was woken, and until when it is held."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.db = apsw.Connection(":memory:")
        migrate(self.db)
        self.group = GroupWriter(self.db)
        self.writers = [StreamWriter(STREAM, "job", self.clock) for _ in range(2)]
        self.accepted: list[Payload] = []
        self.version = [0, 0]
        """How many appends each writer has seen, its own included."""
        self.appends = self.epoch = self.wakes = 0
        self.epochs = [0, 0]
        self.held_until: int | None = None
        self.closed = False
        self.count = 0

    def head(self) -> StreamHead | None:
        return queries.head(self.db, STREAM)

    def current(self, who: int) -> bool:
        return self.version[who] == self.appends and self.epochs[who] == self.epoch

    def commit(self, who: int, size: int, patch: HeadPatch = NO_PATCH, expect_wakes: int | None = None) -> bool:
        payloads = [note(self.count + number) for number in range(size)]
        self.count += size
        append = self.writers[who].stage(*payloads, patch=patch, expect_wakes=expect_wakes)
        (error,) = self.group.write([Commit(appends=(append,), at=append.at)])
        expected = self.current(who) and expect_wakes in {None, self.wakes} and (size > 0 or self.appends > 0)
        assert (error is None) == expected
        if error is not None and size:
            self.version[who] = -1  # it has given out places that nobody has, until it looks again
        elif size:
            self.accepted += payloads
            self.appends += 1
            self.version[who] = self.appends
        return error is None

    @rule(who=WHO, size=st.integers(1, 3))
    def append(self, who: int, size: int) -> None:
        self.commit(who, size)

    @rule(who=WHO, stale=st.booleans())
    def park(self, who: int, *, stale: bool) -> None:
        patch = HeadPatch(state="waiting", due_at=None, release=True)
        if self.commit(who, 0, patch, self.wakes + stale):
            self.held_until = None

    @rule(who=WHO)
    def look(self, who: int) -> None:
        self.writers[who] = StreamWriter(STREAM, "job", self.clock, self.head())
        self.version[who], self.epochs[who] = self.appends, self.epoch

    @precondition(lambda self: self.appends > 0)
    @rule(who=WHO)
    def take(self, who: int) -> None:
        leases = queries.acquire(self.db, STREAM, terms(str(who), self.clock.now()), None)
        free = self.held_until is None or self.held_until <= self.clock.now()
        assert bool(leases) == (free and not self.closed)
        if leases:
            self.epoch += 1
            self.held_until = self.clock.now() + LEASE
            self.writers[who] = StreamWriter(STREAM, "job", self.clock, leases[0].head)
            self.version[who], self.epochs[who] = self.appends, self.epoch

    @rule()
    def wake(self) -> None:
        assert self.group.write([Commit(appends=(), at=self.clock.now(), wakes=(STREAM,))]) == [None]
        self.wakes += self.appends > 0 and not self.closed

    @rule(who=WHO)
    def close(self, who: int) -> None:
        self.closed |= self.commit(who, 1, HeadPatch(closed=True))

    @rule(seconds=st.sampled_from([1, 29, 30]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @invariant()
    def the_stream_is_what_was_accepted(self) -> None:
        events, head = queries.events(self.db, STREAM, 0, 1_000), self.head()
        assert [decode(event.kind, event.data) for event in events] == self.accepted
        assert verify(STREAM, events) == ((head.seq, head.hash) if head else verify(STREAM, []))
        if head is not None:
            assert (head.epoch, head.wakes, head.closed) == (self.epoch, self.wakes, self.closed)


class TestOneStream(OneStream.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
