"""Group commit: everything that waits is written as one transaction, and what comes meanwhile forms the next.

Commits are collected until the event loop has run every task that was ready. Then a thread writes them, so that a slow
disk delays no other commit. Two hand-overs between threads cost more than a fast disk's flush, though: a commit that is
waited for and comes alone is written at once, on the event loop, as long as the disk has lately been fast and no other
process holds the storage's lock. Where one task has lately been the only one that waits, not even the loop is waited
for.

Work other than commits (claims, leases, reads of memory) goes through the same queue, so that it sees everything
submitted before it.

The columns of a head in a table: the same columns, in the same order, on every backend that speaks SQL.

Runs: most commits of a group follow each other on the same few streams, and are written as one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, TypeVar

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.event import NO_PATCH, Append, Commit, Event, Lease, StreamHead

Outcomes = Sequence[JournalError | None]

T = TypeVar("T")
Task = tuple[Callable[[], Any], asyncio.Future[Any]]

GROUP_LIMIT: Final = 4_096
"""Commits in one transaction at most, so that a reader of the write-ahead log never waits long."""
FAST_S: Final = 0.005
"""A disk that usually flushes within this time may be waited for on the event loop."""
_AT_ONCE_BYTES: Final = 256 * 1024
"""More than that is written on the thread, however fast the disk: it would hold the event loop up."""
_MEMORY: Final = 8
"""Over about so many groups "usually" is taken."""
_MOMENT_S: Final = 0.0005
_STREAK: Final = 8
"""After this many commits in a row that one task waited for, no other is expected to share a group with it."""
_ROUND_S: Final = 0.005
"""The time that such a task may go on before the event loop has to come round."""
_LINGER_S: Final = 0.002
"""The time that commits that no one waits for are kept back, so that one that is waited for takes them along."""
_LINGERING: Final = 64
"""So many of them are not kept back."""
_LOOK_S: Final = 0.05
"""The time that a commit waits at most while the event loop does not come round."""
_LOOKS: Final = 20
"""So many looks in vain, and the thread sleeps until it is woken."""


class CommitThread:
    """Commits groups and runs tasks, in the order they were submitted.

    Making it starts it. `written` is called on the loop after each group, and told whether that changed heads. `write`
    commits one group and tells the outcome of each commit; where it raises, none of the group was written. `at_once`
    does the same on the event loop, or returns None where it would have to wait for someone's lock.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[Commit]], Outcomes],
        written: Callable[[bool], None],
        at_once: Callable[[Sequence[Commit]], Outcomes | None] | None = None,
    ) -> None:
        self._write = write
        self._at_once = at_once
        self._written = written
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Commit | Task | None] = deque()
        self._working = threading.Lock()
        """Held by the thread that takes waiting commits and writes them."""
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._asleep = True
        """The thread does not look by itself."""
        self._collecting = False
        """The loop has not come round since the first commit after it last did."""
        self._round_ends = 0.0
        self._last, self._streak = 0, 0
        """The task that last waited for a commit, and how often in a row it was the same."""
        self._lingering: asyncio.TimerHandle | None = None
        self._usual_s = 0.0
        self._closed = False
        self._submitted = 0
        self._written_bytes = 0
        self._untold = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Return whether nothing more is taken."""
        return self._closed

    @property
    def backlog(self) -> int:
        """Bytes submitted and not yet written: one counter belongs to the loop, the other to the writing thread."""
        return self._submitted - self._written_bytes

    def submit(self, commit: Commit) -> None:
        """Queue a commit; order of submission is order of writing."""
        if self._closed:
            settle([(commit, journal_closed())])
            return
        self._submitted += commit.size
        self._untold += 1
        self._waiting.append(commit)
        if commit.synced and self._alone() and self._wrote_at_once():
            return
        if self._asleep:
            self._wake()
        elif not self._collecting:
            self._collect()

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` on the thread, after everything submitted before. Cancelling the future does not stop it."""
        if self._closed:
            raise journal_closed()
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append((work, future))
        self._wake()
        return future

    def meanwhile(self, work: Callable[[], T]) -> T | None:
        """Do something brief with the storage on the event loop; None where a group is being written just now."""
        if not self._working.acquire(blocking=False):
            return None
        try:
            return work()
        finally:
            self._working.release()

    def concerns(self, stream: str) -> bool:
        """Return whether something that waits, or is being written just now, may change a stream or its head."""
        waits = self.meanwhile(
            lambda: any(not isinstance(item, Commit) or _changes(item, stream) for item in self._waiting)
        )
        return waits is not False

    async def close(self) -> None:
        """Write everything submitted, then end the thread; may be called twice."""
        if not self._closed:
            self._closed = True
            self._waiting.append(None)
            self._wake()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    # --- on the event loop

    def _alone(self) -> bool:
        """Return whether this task has long been the only one that waits, and the loop came round lately."""
        task = id(asyncio.current_task(self._loop))
        self._streak = self._streak + 1 if task == self._last else 0
        self._last = task
        if self._streak < _STREAK:
            return False
        if not self._collecting:
            self._collect()
        return monotonic() < self._round_ends

    def _collect(self) -> None:
        self._collecting = True
        self._round_ends = monotonic() + _ROUND_S
        self._loop.call_soon(self._collected)

    def _wake(self) -> None:
        self._asleep = False
        self._bell.put(None)

    def _collected(self) -> None:
        """Every task that was ready has run: write what they submitted, or leave it to the thread."""
        self._collecting = False
        waiting = tuple(self._waiting)  # a copy, because the thread may be taking from it
        if not waiting:
            return
        if len(waiting) < _LINGERING and not any(map(_waited_for, waiting)):
            if self._lingering is None:
                self._linger(waiting[0])
        elif not self._wrote_at_once():
            self._wake()

    def _linger(self, first: object) -> None:
        self._lingering = self._loop.call_later(_LINGER_S, self._lingered, first)

    def _lingered(self, first: object) -> None:
        """Time is up for those that were kept back, unless they were taken along and others have come since."""
        self._lingering = None
        with contextlib.suppress(IndexError):  # the thread may be taking from it
            if self._waiting[0] is first:
                self._wake()
            else:
                self._linger(self._waiting[0])

    def _wrote_at_once(self) -> bool:
        # A waiter for an earlier commit is told of it first.
        if self._at_once is None or self._usual_s > FAST_S or len(self._waiting) != self._untold:
            return False
        if self._submitted - self._written_bytes > _AT_ONCE_BYTES:
            return False
        # The thread tells what it did a moment before it is done with it.
        if not self._working.acquire(timeout=_MOMENT_S):
            return False
        try:
            group = [item for item in self._waiting if isinstance(item, Commit)]
            alone = len(group) == len(self._waiting) == self._untold and sum(commit.synced for commit in group) == 1
            outcomes = self._commit(group, self._at_once) if alone else None
            if outcomes is None:
                return False
            self._waiting.clear()
            settled = self._written_now(group, outcomes)
        finally:
            self._working.release()
        self._settle(settled, group)
        return True

    # --- on the thread

    def _run(self) -> None:
        looks = 0
        while True:
            try:
                self._bell.get(timeout=None if self._asleep else _LOOK_S)
                looks = 0
            except Empty:
                looks += 1
            if self._waiting:
                with self._working:
                    if self._empty():
                        return
            elif looks >= _LOOKS:
                self._asleep = True
                # A commit that came in just before this was not seen yet.
                if self._waiting:
                    self._asleep = False

    def _empty(self) -> bool:
        """Do everything that waits; whether that was the end."""
        waiting = self._waiting
        while waiting:
            group: list[Commit] = []
            while waiting and len(group) < GROUP_LIMIT and isinstance(waiting[0], Commit):
                group.append(waiting.popleft())  # type: ignore[arg-type] # it is one
            if group:
                self._flush(group)
                continue
            item = waiting.popleft()
            if item is None:
                return True
            if isinstance(item, tuple):
                perform(item, self._loop)
        return False

    def _flush(self, group: Sequence[Commit]) -> None:
        settled = self._written_now(group, self._commit(group, self._write) or ())
        call_loop(self._loop, lambda: self._settle(settled, group))

    # --- on either

    def _written_now(self, group: Sequence[Commit], outcomes: Outcomes) -> Sequence[tuple[Commit, JournalError | None]]:
        self._written_bytes += sum(commit.size for commit in group)
        pairs = zip(group, outcomes, strict=True)
        return [(commit, error) for commit, error in pairs if error is not None or commit.on_done is not None]

    def _commit(self, group: Sequence[Commit], write: Callable[[Sequence[Commit]], Outcomes | None]) -> Outcomes | None:
        """Commit a group. One with something in it that the storage cannot take is committed one by one (promise 2).

        That may have to wait for someone's lock and is left to the thread.
        """
        began = monotonic()
        try:
            return write(group)
        except JournalError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the thread must outlive it: everything else waits for it
            failure = _unfit(error)
        finally:
            if any(commit.synced for commit in group):
                self._usual_s += (monotonic() - began - self._usual_s) / _MEMORY
        if len(group) == 1 or failure.code is not Code.RECORD_INVALID:
            return [failure] * len(group)
        if write is self._at_once:
            return None
        return [outcome for commit in group for outcome in self._commit([commit], self._write) or ()]

    def _settle(self, settled: Iterable[tuple[Commit, JournalError | None]], group: Sequence[Commit]) -> None:
        self._untold -= len(group)
        settle(settled)
        self._written(any(commit.changes_heads for commit in group))


def _changes(commit: Commit, stream: str) -> bool:
    return stream in commit.wakes or any(append.stream == stream for append in commit.appends)


def _waited_for(item: Commit | Task | None) -> bool:
    return not isinstance(item, Commit) or item.synced


def perform(task: Task, loop: asyncio.AbstractEventLoop) -> None:
    """Do some work on this thread, and tell the loop its outcome."""
    work, future = task
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it belongs to the code that awaits the future
        failure = error
        call_loop(loop, lambda: _fail(future, failure))
    else:
        call_loop(loop, lambda: _resolve(future, result))


def call_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Call something on the loop, from another thread."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The loop is closed: there is no waiter left to tell, and what was written is written.
        return


def settle(settled: Iterable[tuple[Commit, JournalError | None]]) -> None:
    """Tell each commit's writer its outcome; on the event loop."""
    for commit, error in settled:
        if error is not None and commit.on_error is not None:
            commit.on_error(error)
        if commit.on_done is not None:
            commit.on_done(error)


def journal_closed() -> JournalError:
    """Return what anyone gets who comes after the journal was closed."""
    return JournalError("the journal was closed", code=Code.JOURNAL_CLOSED, remedy="Open it again.")


def conflict(*streams: str) -> AppendConflictError:
    """Return what a writer gets who is not where its stream is."""
    return AppendConflictError(
        f"{', '.join(streams)}: another writer has changed the stream and now holds it",
        remedy="Read the stream again; earlier events are unchanged.",
    )


async def taken(
    taking: asyncio.Future[list[Lease]], give_back: Callable[[list[Lease]], Awaitable[None]]
) -> list[Lease]:
    """Wait for leases; if the caller is cancelled meanwhile, give them back: no one else would hear of them."""
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        # A task of its own, so that a caller that is cancelled once more leaves it running.
        await asyncio.shield(_returned(taking, give_back))
        raise


async def _returned(taking: asyncio.Future[list[Lease]], give_back: Callable[[list[Lease]], Awaitable[None]]) -> None:
    with contextlib.suppress(JournalError):
        if leases := await taking:
            await give_back(leases)


def _unfit(error: Exception) -> JournalError:
    reason = f"the storage cannot hold a value to record: {error!r}"
    unfit = JournalError(
        reason, code=Code.RECORD_INVALID, remedy="Nothing was recorded. Fix the value that the message names."
    )
    unfit.__cause__ = error
    return unfit


def _resolve(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


class ReadThread:
    """Does what it is given, in order."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` on the thread. Cancelling the future does not stop it."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((work, future))
        return future

    def close(self) -> None:
        """End the thread after what was asked before; blocks until then."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            perform(task, self._loop)


COLUMNS: Final = StreamHead.__struct_fields__
"""A head's columns are named as its fields are, and come in their order."""
HEADS: Final = f"SELECT {', '.join(COLUMNS)} FROM heads"  # noqa: S608 - names of fields

_decode: Final = msgspec.json.Decoder(dict[str, str]).decode


def reached(bounds: Sequence[int]) -> str:
    """Return how many of the bounds the time between a head's first and last event reached, as an expression in SQL."""
    steps = " ".join(f"WHEN updated_at - created_at < {bound:d} THEN {number}" for number, bound in enumerate(bounds))
    return f"CASE {steps} ELSE {len(bounds)} END" if bounds else "0"


def to_head(row: Sequence[Any]) -> StreamHead:
    """The head in a row that begins with COLUMNS, its labels as JSON text."""
    return StreamHead(
        stream=row[0],
        kind=row[1],
        state=row[2],
        seq=row[3],
        epoch=row[4],
        hash=row[5],
        lease_owner=row[6],
        lease_until=row[7],
        due_at=row[8],
        priority=row[9],
        wakes=row[10],
        closed=bool(row[11]),
        route=row[12],
        subject=row[13],
        title=row[14],
        labels=_labels(row[15]),
        created_at=row[16],
        updated_at=row[17],
        seal=row[18],
        share=row[19],
    )


def _labels(text: str) -> dict[str, str]:
    """Labels as stored. If the text is something else, none, so that lists stay readable: `verify` names it."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return {}


class AppendRun:
    """Appends of one writer on one stream that follow each other without a gap, folded into one."""

    __slots__ = ("commits", "events", "first", "last")

    def __init__(self, append: Append, index: int) -> None:
        self.first = self.last = append
        self.events: list[Event] = list(append.events)
        self.commits = [index]

    def takes(self, append: Append) -> bool:
        """Return whether the append continues this run."""
        return append.expect_hash == self.events[-1].hash and append.epoch == self.first.epoch

    def add(self, append: Append, index: int) -> None:
        """Fold the append of commit `index` in."""
        self.last = append
        self.events += append.events
        self.commits.append(index)


def folds(commit: Commit) -> bool:
    """Return whether a commit is only events at the end of one existing stream, and perhaps blobs."""
    if len(commit.appends) != 1 or commit.wakes:
        return False
    append = commit.appends[0]
    plain = append.patch is NO_PATCH and append.expect_wakes is None
    return plain and append.expect_seq > 0 and bool(append.events)
