"""Group commit on the event loop: one task sends everything that waits as one statement, and then what came meanwhile.

A connection that is lost in the middle of a commit leaves its outcome open, and perhaps a copy of the group on its way.
The outcome is never guessed: the task connects again and has it settled in `writers` (functions.py). Either the group
was written, or its number is used up and no copy of it can be written any more. Only then is it sent again, under the
next number, or anything else written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.batching import conflict, journal_closed, settle
from remit.journal.event import Commit
from remit.journal.postgres.errors import again, lost, state_of, translated
from remit.journal.postgres.functions import CONFLICT, LATE
from remit.journal.postgres.groups import Group, apart
from remit.journal.postgres.server import ANSWER_S

if TYPE_CHECKING:
    from remit.journal.postgres.server import Link

_LIMIT: Final = 1_024
"""Commits in one statement at most."""
_BYTES: Final = 8 * 1024 * 1024
"""Bytes in one statement, beyond which no commit is added."""
_NEVER: Final = [0]
"""Left in place of what was refused (places begin at 1 and -1): the number was used up without its group."""
_SETTLE: Final = """
UPDATE writers SET groups = $2, refused = CASE WHEN groups = $2 THEN refused ELSE $3 END, at = now() WHERE id = $1
RETURNING refused
"""


class CommitTask:
    """Takes commits and writes them in groups, in the order they were submitted."""

    def __init__(self, link: Link, written: Callable[[bool], None]) -> None:
        self._link = link
        self._written = written
        self._queue: list[Commit | asyncio.Future[None]] = []
        self._arrived = asyncio.Event()
        self._writer = 0
        self._groups = 0
        self.closed = False
        self.backlog = 0
        """Bytes submitted and not yet written."""
        self._task = asyncio.create_task(self._run(), name="remit:journal-commits")

    def submit(self, commit: Commit) -> None:
        """Queue a commit; order of submission is order of writing."""
        if self.closed:
            settle([(commit, journal_closed())])
            return
        self.backlog += commit.size
        self._queue.append(commit)
        self._arrived.set()

    async def drained(self) -> None:
        """Return once everything submitted before has been written, or failed."""
        if self.closed:
            raise journal_closed()
        if not self.backlog:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(reached)
        self._arrived.set()
        await reached

    async def close(self) -> None:
        """Write everything submitted, then end; may be called twice."""
        self.closed = True
        self._arrived.set()
        await asyncio.wait([self._task])

    # --- the task

    async def _run(self) -> None:
        while not self.closed or self._queue:
            if not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            group, reached = self._next()
            if group:
                outcomes = await self._outcomes(group)
                self.backlog -= sum(commit.size for commit in group)
                settle(zip(group, outcomes, strict=True))
                self._written(any(commit.changes_heads for commit in group))
            for future in reached:
                if not future.done():
                    future.set_result(None)
        if self._writer:
            # Not worth waiting for: who prunes erases those that were left.
            with contextlib.suppress(Exception):
                await self._link.once("DELETE FROM writers WHERE id = $1", self._writer, patience_s=ANSWER_S)
        await self._link.close()

    def _next(self) -> tuple[list[Commit], list[asyncio.Future[None]]]:
        """Return what goes into the next group, and those that wait for it to be written."""
        group: list[Commit] = []
        reached: list[asyncio.Future[None]] = []
        size = taken = 0
        for item in self._queue:
            if isinstance(item, Commit):
                # A waiter for what is before this one does not wait for this one.
                if reached or len(group) >= _LIMIT or size > _BYTES or (group and apart(group[0], item)):
                    break
                group.append(item)
                size += item.size
            else:
                reached.append(item)
            taken += 1
        del self._queue[:taken]
        return group, reached

    async def _outcomes(self, group: Sequence[Commit]) -> Sequence[JournalError | None]:
        """Write a group; the outcome of each commit."""
        try:
            return await self._write(group)
        except Exception as error:  # noqa: BLE001 - the task must outlive it: everything else waits for it
            failure = error if isinstance(error, JournalError) else translated(error, self._link.where)
        apart = failure.code in {Code.RECORD_INVALID, Code.APPEND_CONFLICT}
        if len(group) == 1 or not apart:
            return [failure] * len(group)
        # One of them is at fault, and the others have nothing to do with it (promise 2).
        return [outcome for commit in group for outcome in await self._outcomes([commit])]

    async def _write(self, commits: Sequence[Commit]) -> Sequence[JournalError | None]:
        group = Group(commits)
        errors: list[JournalError | None] = [None] * len(commits)
        refused, one_by_one = group.refused(await self._send(group))
        for index in refused:
            commit = commits[index]
            errors[index] = (await self._outcomes([commit]))[0] if one_by_one else _conflict(commit)
        return errors

    async def _send(self, group: Group) -> list[int]:
        """Write one group exactly once, whatever becomes of connections; the places of the commits refused."""
        statement, arguments = group.statement()
        patience_s = ANSWER_S
        while True:
            if not self._writer:
                self._writer = await self._link.run("INSERT INTO writers DEFAULT VALUES RETURNING id")
                self._groups = 0
            number = self._groups + 1
            try:
                refused = await self._link.once(
                    statement, self._writer, number, group.flush, group.heads, *arguments, patience_s=patience_s
                )
            except Exception as error:
                if again(error):
                    continue
                if state_of(error) == CONFLICT:
                    raise _conflict(group.commits[0]) from error
                if not lost(error) and state_of(error) != LATE:
                    raise
                refused = await self._settled(number, lost_for=error if lost(error) else None)
                # Perhaps the line is not silent, but slow.
                patience_s *= 2
            self._groups = number
            if refused is not None:
                return list(refused)

    async def _settled(self, number: int, lost_for: BaseException | None) -> list[int] | None:
        """The final outcome of a group: the places refused, or None where it was not written and never will be."""
        # Without an answer a copy may yet be written. Then no other group may ever have its number.
        writer, self._writer = self._writer, 0
        try:
            refused: list[int] | None = await self._link.run(_SETTLE, writer, number, _NEVER)
        except JournalError as error:
            if lost_for is None:
                raise
            raise translated(lost_for, self._link.where, unknown=True) from error
        if refused is None:  # Erased for want of use: whatever comes next starts again.
            if lost_for is None:
                return None
            raise translated(lost_for, self._link.where, unknown=True)
        self._writer = writer
        # Where it was not written, others before it may be gone as well: the server crashed, and lost what it had not
        # flushed. Whatever follows on that is refused, because its head is not there.
        return None if refused == _NEVER else refused


def _conflict(commit: Commit) -> AppendConflictError:
    return conflict(*(append.stream for append in commit.appends))
