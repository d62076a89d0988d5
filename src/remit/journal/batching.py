"""Group commit: one thread owns the storage's write connection and takes everything that waits as one transaction.

A lone commit is never delayed: the thread writes whatever is there the moment it is free, and what arrives meanwhile
forms the next group. Work other than commits (claims, leases, migrations) goes through the same queue, so that it sees
everything submitted before it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.event import Commit

Outcomes = Sequence[JournalError | None]

T = TypeVar("T")
Task = tuple[Callable[[], Any], asyncio.Future[Any]]

GROUP_LIMIT: Final = 4_096
"""Commits in one transaction at most, so that a reader of the write-ahead log never waits long."""


class CommitThread:
    """A thread that commits groups and runs tasks, in the order they were submitted."""

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[Commit]], Outcomes],
        written: Callable[[bool], None],
    ) -> None:
        """Start it. `written` is called on the loop after each group, and told whether that changed heads.

        `write` commits one group and tells what became of each commit; where it raises, none of the group was written.
        """
        self._write = write
        self._written = written
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Commit | Task | None] = SimpleQueue()
        self._closed = False
        self._submitted = 0
        self._written_bytes = 0
        self._untold = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether nothing more is taken."""
        return self._closed

    @property
    def backlog(self) -> int:
        """Bytes submitted and not yet written. Each of the two counters has one writer, so no lock is needed."""
        return self._submitted - self._written_bytes

    @property
    def untold(self) -> bool:
        """Whether a commit was submitted whose end the event loop has not heard of; it may have happened."""
        return self._untold > 0

    def submit(self, commit: Commit) -> None:
        """Queue a commit; order of submission is order of writing."""
        if self._closed:
            settle([(commit, journal_closed())])
            return
        self._submitted += commit.size
        self._untold += 1
        self._queue.put(commit)

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` on the thread, after everything submitted before. Cancelling the future does not stop it."""
        if self._closed:
            raise journal_closed()
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((work, future))
        return future

    async def close(self) -> None:
        """Write everything submitted, then end the thread; may be called twice."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        queue, group = self._queue, []
        open_for_more = True
        while open_for_more:
            item = queue.get()
            while True:
                if isinstance(item, Commit):
                    group.append(item)
                elif group:
                    self._flush(group)
                    group = []
                if item is None:
                    open_for_more = False
                    break
                if isinstance(item, tuple):
                    perform(item, self._loop)
                if len(group) >= GROUP_LIMIT:
                    break
                try:
                    item = queue.get_nowait()
                except Empty:
                    break
            if group:
                self._flush(group)
                group = []

    def _flush(self, group: list[Commit]) -> None:
        errors = self._commit(group)
        self._written_bytes += sum(commit.size for commit in group)
        settled = [(c, e) for c, e in zip(group, errors, strict=True) if e is not None or c.on_done is not None]
        heads = any(commit.changes_heads for commit in group)
        call_loop(self._loop, lambda: self._settle(settled, heads, len(group)))

    def _commit(self, group: Sequence[Commit]) -> Outcomes:
        """Commit a group. One with something in it that the storage cannot take is committed one by one (promise 2)."""
        try:
            return self._write(group)
        except JournalError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the thread must outlive it: everything else waits for it
            failure = _unfit(error)
        if len(group) == 1 or failure.code is not Code.RECORD_INVALID:
            return [failure] * len(group)
        return [outcome for commit in group for outcome in self._commit([commit])]

    def _settle(self, settled: Iterable[tuple[Commit, JournalError | None]], heads: bool, count: int) -> None:
        self._untold -= count
        settle(settled)
        self._written(heads)


def perform(task: Task, loop: asyncio.AbstractEventLoop) -> None:
    """Do some work on this thread, and tell the loop what came of it."""
    work, future = task
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits the future
        failure = error
        call_loop(loop, lambda: _fail(future, failure))
    else:
        call_loop(loop, lambda: _resolve(future, result))


def call_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Call something on the loop, from another thread."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The loop is closed: nobody is left who could be told, and what was written is written.
        return


def settle(settled: Iterable[tuple[Commit, JournalError | None]]) -> None:
    """Tell each commit's writer what became of it; on the event loop."""
    for commit, error in settled:
        if error is not None and commit.on_error is not None:
            commit.on_error(error)
        if commit.on_done is not None:
            commit.on_done(error)


def journal_closed() -> JournalError:
    """What anybody gets who comes after the journal was closed."""
    return JournalError("the journal was closed", code=Code.JOURNAL_CLOSED, remedy="Open it again.")


def _unfit(error: Exception) -> JournalError:
    why = f"the storage cannot take what was to be recorded: {error!r}"
    unfit = JournalError(why, code=Code.RECORD_INVALID, remedy="Nothing was recorded; mend the value that is named.")
    unfit.__cause__ = error
    return unfit


def _resolve(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
