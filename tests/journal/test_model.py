"""Several writers, workers and wakers on one journal, in any order: it does what a few dictionaries would do."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from remit.canonical import sha256
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.event import NO_PATCH, OPEN_STATES, Blob, HeadPatch, Lease, StreamHead
from remit.journal.writer import StreamWriter
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import LEASE, Storage, note, terms
from tests.journal.storages import SqliteStorage
from tests.simulation.test_store import ShelfStorage

pytestmark = pytest.mark.slow
T = TypeVar("T")
STREAMS = ("job/a", "job/b", "job/c")
STREAM = st.sampled_from(STREAMS)
WHO = st.sampled_from(["ann", "bob"])
VALUES = (b"one", b"two")


class Expected(msgspec.Struct):
    """A stream as it should be."""

    seq: int
    due_at: int | None
    state: str = ""
    epoch: int = 0
    wakes: int = 0
    owner: str | None = None
    until: int | None = None
    closed: bool = False

    def free(self, now: int, over: str | None = None) -> bool:
        """Whether somebody may lease it."""
        return not self.closed and (self.owner in {None, over} or (self.until or 0) <= now)


class JournalModel(RuleBasedStateMachine):
    """The model: a few fields of each stream, and what each writer last saw."""

    reopens = False

    def storage_in(self, folder: Path) -> Storage:
        """The storage under test, empty."""
        return SqliteStorage()

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.storage: Storage = self.storage_in(folder)
        self.runner = self.stack.enter_context(asyncio.Runner())
        self.run(self.open())
        self.streams: dict[str, Expected] = {}
        self.inbox = self.count = 0
        self.writers: dict[tuple[str, str], StreamWriter] = {}
        self.blobs: dict[str, int | None] = {}

    def run(self, work: Awaitable[T]) -> T:
        async def main() -> T:
            return await work

        return self.runner.run(main())

    async def open(self) -> None:
        self.opened = AsyncExitStack()
        self.journal = await self.opened.enter_async_context(self.storage.open(self.clock))

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            self.run(self.opened.aclose())
            self.stack.close()

    # --- writing

    def refusal(self, work: Awaitable[Any]) -> Code | None:
        try:
            self.run(work)
        except JournalError as error:
            return error.code
        return None

    def write(
        self, who: str, stream: str, size: int, *, synced: bool, patch: HeadPatch = NO_PATCH, **more: Any
    ) -> bool:
        """Append, and say whether that was accepted; it is exactly where the model says so."""
        writer, model = self.writers[who, stream], self.streams[stream]
        stale = more.get("expect_wakes") not in {None, model.wakes}
        right = writer.failure is None and (writer.seq, writer.epoch) == (model.seq, model.epoch) and not stale
        self.count += 1

        async def append() -> None:
            events = [note(self.count)] * size
            await self.journal.append(writer, *events, synced=synced, patch=patch, **more)
            await self.journal.drained()
            if writer.failure is not None:
                raise writer.failure

        assert self.refusal(append()) == (None if right else Code.APPEND_CONFLICT)
        if right:
            model.seq += size
            changes = {
                name: value
                for name in ("state", "due_at", "closed")
                if (value := getattr(patch, name)) != msgspec.UNSET
            }
            for name, value in changes.items():
                setattr(model, name, value)
            if patch.release:
                model.owner = model.until = None
        return right

    @rule(stream=STREAM, who=WHO, later=st.sampled_from([None, 0, 5]))
    def create(self, stream: str, who: str, later: int | None) -> None:
        due = None if later is None else self.clock.now() + later * SECOND
        refused = self.refusal(self.journal.create(stream, "job", note(0), patch=HeadPatch(due_at=due)))
        assert refused == (Code.APPEND_CONFLICT if stream in self.streams else None)
        if refused is None:
            self.streams[stream] = Expected(1, due)
            self.look(who, stream)

    @rule(who=WHO, stream=STREAM)
    def look(self, who: str, stream: str) -> None:
        if stream in self.streams:
            self.writers[who, stream] = self.journal.writer(stream, "job", self.run(self.journal.head(stream)))

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), size=st.integers(0, 3), synced=st.booleans(), wakes=st.sampled_from([None, 0, 1]))
    def append(self, data: st.DataObject, size: int, *, synced: bool, wakes: int | None) -> None:
        who, stream = data.draw(st.sampled_from(sorted(self.writers)))
        expect = None if wakes is None else self.streams[stream].wakes + wakes
        self.write(who, stream, size, synced=synced, expect_wakes=expect)

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), close=st.booleans())
    def end(self, data: st.DataObject, *, close: bool) -> None:
        who, stream = data.draw(st.sampled_from(sorted(self.writers)))
        due = None if close else self.clock.now()
        self.write(who, stream, 1, synced=True, patch=HeadPatch(closed=close, due_at=due, state="x", release=True))

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), stale=st.booleans())
    def park(self, data: st.DataObject, *, stale: bool) -> None:
        who, stream = data.draw(st.sampled_from(sorted(self.writers)))
        writer, model = self.writers[who, stream], self.streams[stream]
        if writer.failure is not None:
            return
        right = (writer.seq, writer.epoch) == (model.seq, model.epoch) and not stale
        patch = HeadPatch(state="waiting", due_at=None, release=True)
        assert self.run(self.journal.park(writer, patch, seen_wakes=model.wakes + stale)) == right
        if right:
            model.state, model.due_at, model.owner, model.until = "waiting", None, None, None

    @rule(stream=STREAM, message=st.booleans())
    def wake(self, stream: str, *, message: bool) -> None:
        if message:
            self.run(self.journal.post("job/inbox", "inbox", note(self.inbox), wakes=(stream,)))
            self.inbox += 1
        else:
            self.run(self.journal.wake(stream))
        model = self.streams.get(stream)
        if model is not None and not model.closed:
            model.wakes += 1
            if model.owner is None:
                now = self.clock.now()
                model.due_at = now if model.due_at is None else min(model.due_at, now)

    # --- leases

    def leased(self, who: str, leases: list[Lease]) -> None:
        for lease in leases:
            model = self.streams[lease.head.stream]
            assert (lease.previous_owner, lease.previous_state) == (model.owner, model.state)
            model.epoch += 1
            model.owner, model.until = who, self.clock.now() + LEASE
            model.due_at, model.state = model.until, "running" if model.state in OPEN_STATES else model.state
            self.writers[who, lease.head.stream] = self.journal.writer(lease.head.stream, "job", lease.head)

    @rule(who=WHO, limit=st.integers(1, 3))
    def claim(self, who: str, limit: int) -> None:
        now = self.clock.now()
        places = list(self.streams)
        due = [name for name, model in self.streams.items() if model.free(now) and (model.due_at or now + 1) <= now]
        due.sort(key=lambda name: (self.streams[name].due_at, places.index(name)))
        leases = self.run(self.journal.claim(terms(who, now, limit=limit, state="running")))
        assert [lease.head.stream for lease in leases] == due[:limit]
        self.leased(who, leases)

    @rule(who=WHO, stream=STREAM, over=st.sampled_from([None, "ann", "bob"]))
    def acquire(self, who: str, stream: str, over: str | None) -> None:
        now, model = self.clock.now(), self.streams.get(stream)
        lease = self.run(self.journal.acquire(stream, terms(who, now, state="running"), over=over))
        assert (lease is not None) == (model is not None and model.free(now, over))
        self.leased(who, [lease] if lease is not None else [])

    @precondition(lambda self: self.writers)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        who, stream = data.draw(st.sampled_from(sorted(self.writers)))
        epoch, model, until = self.writers[who, stream].epoch, self.streams[stream], self.clock.now() + LEASE
        held = epoch == model.epoch and model.owner is not None and not model.closed
        assert self.run(self.journal.renew([(stream, epoch)], until)) == ([stream] if held else [])
        if held:
            model.until = model.due_at = until

    @rule(seconds=st.sampled_from([1, 29, 30]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    # --- blobs and the end of a process

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), value=st.sampled_from(VALUES), keep_s=st.sampled_from([None, 1, 30]))
    def keep(self, data: st.DataObject, value: bytes, keep_s: int | None) -> None:
        who, stream = data.draw(st.sampled_from(sorted(self.writers)))
        until = None if keep_s is None else self.clock.now() + keep_s * SECOND
        blob = Blob(sha256(value), value, until)
        if self.write(who, stream, 1, synced=True, blobs=(blob,)):
            known = self.blobs.get(blob.digest, 0)
            self.blobs[blob.digest] = None if known is None or until is None else max(known, until)

    @rule()
    def prune(self) -> None:
        gone = [digest for digest, until in self.blobs.items() if until is not None and until <= self.clock.now()]
        assert self.run(self.journal.prune()) == len(gone)
        for digest in gone:
            del self.blobs[digest]

    @precondition(lambda self: self.reopens)
    @rule()
    def reopen(self) -> None:
        self.run(self.opened.aclose())
        self.run(self.open())
        self.writers.clear()

    # --- what is there

    @invariant()
    def the_journal_is_what_the_model_says(self) -> None:
        self.run(self.compare())

    async def compare(self) -> None:
        for name, model in self.streams.items():
            head = await self.journal.head(name)
            assert head is not None
            assert as_expected(head) == model
            assert await self.journal.verify(name) == model.seq
        wakes = {name: model.wakes for name, model in self.streams.items()}
        assert await self.journal.wakes(STREAMS) == wakes
        dues = [model.due_at for model in self.streams.values() if model.due_at is not None and not model.closed]
        assert await self.journal.next_due("job") == min(dues, default=None)
        held = {name for name, model in self.streams.items() if model.owner is not None and not model.closed}
        assert {head.stream for head in await self.journal.leases("job")} == held
        assert len(await self.journal.read("job/inbox")) == self.inbox
        for value in VALUES:
            assert await self.journal.blob(sha256(value)) == (value if sha256(value) in self.blobs else None)


def as_expected(head: StreamHead) -> Expected:
    """A head as the model keeps it."""
    return Expected(
        seq=head.seq,
        due_at=head.due_at,
        state=head.state,
        epoch=head.epoch,
        wakes=head.wakes,
        owner=head.lease_owner,
        until=head.lease_until,
        closed=head.closed,
    )


class OnFile(JournalModel):
    reopens = True

    def storage_in(self, folder: Path) -> Storage:
        return SqliteStorage(folder / "journal.db")


class OnShelf(JournalModel):
    reopens = True

    def storage_in(self, folder: Path) -> Storage:
        return ShelfStorage()


few = settings(max_examples=15, stateful_step_count=25, deadline=None)


class TestInMemory(JournalModel.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = few


class TestOnFile(OnFile.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = few


class TestOnShelf(OnShelf.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = few
