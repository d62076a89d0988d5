"""The way that a group of commits becomes one statement of functions.py. Pure: commits in, columns out.

Group commit on the event loop: one task sends everything that waits as one statement, and then what came meanwhile.

A connection that is lost in the middle of a commit leaves its outcome open, and perhaps a copy of the group on its way.
The outcome is never guessed: the task connects again and has it settled in `writers` (functions.py). Either the group
was written, or its number is used up and no copy of it can be written any more. Only then is it sent again, under the
next number, or anything else written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.commit import AppendRun, conflict, folds, journal_closed, settle
from remit.journal.event import NO_PATCH, Append, Commit, Event
from remit.journal.labels import KIND, entries
from remit.journal.postgres.functions import CONFLICT, LATE
from remit.journal.postgres.server import ANSWER_S, again, lost, state_of, translated

if TYPE_CHECKING:
    from remit.journal.postgres.server import PostgresLink


_FOLD: Final = 14
_EACH: Final = 26
"""Arguments of the two functions."""


def _statement(fold: bool, each: bool, aside: bool) -> str:
    calls, used = [], 4 + aside
    for name, count in [("fold", _FOLD)] * fold + [("each", _EACH)] * each:
        calls.append(f"{name}({', '.join(f'${used + n}' for n in range(1, count + 1))})")
        used += count
    missed = " || ".join(calls)
    return f"SELECT aside($1, $2, $3, $4, {missed}, $5)" if aside else f"SELECT done($1, $2, $3, $4, {missed})"


_BOTH: Final = (True, False)
_STATEMENTS: Final = {(f, e, a): _statement(f, e, a) for f in _BOTH for e in _BOTH for a in _BOTH if f or e}


class CommitGroup:
    """Commits that are written together: runs of events, then the others in their order.

    All of them are `aside`, or none is; one that is `unleased` is alone.
    """

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.commits = commits
        self.flush = any(commit.synced for commit in commits)
        self.heads = any(commit.changes_heads for commit in commits)
        self._others: list[int] = []
        runs: dict[str, AppendRun] = {}
        taken: set[str] = set()
        for index, commit in enumerate(commits):
            append = commit.appends[0] if commit.appends else None
            if append is not None and append.stream not in taken and folds(commit) and not commit.blobs:
                run = runs.get(append.stream)
                if run is None:
                    runs[append.stream] = AppendRun(append, index)
                    continue
                if run.takes(append):
                    run.add(append, index)
                    continue
            # What follows on these streams follows this commit.
            taken.update(each.stream for each in commit.appends)
            self._others.append(index)
        self._runs = sorted(runs.values(), key=lambda run: run.first.stream)

    def statement(self) -> tuple[str, list[Any]]:
        """The statement and its arguments after the writer, the group's number, flush and heads."""
        aside = self.commits[0].aside
        arguments: list[Any] = [self.commits[0].at if self.commits[0].unleased else None] if aside else []
        if self._runs:
            arguments += _fold_columns(self._runs)
        if self._others:
            arguments += _each_columns([self.commits[index] for index in self._others])
        return _STATEMENTS[bool(self._runs), bool(self._others), aside], arguments

    def alone(self) -> tuple[str, list[Any]]:
        """The statement that writes these commits in a transaction which others are part of."""
        columns = _each_columns(self.commits)
        return f"SELECT each({', '.join(f'${n}' for n in range(1, len(columns) + 1))})", columns

    def refused(self, places: Iterable[int]) -> tuple[list[int], bool]:
        """The commits behind the places that were refused, in their order; whether each needs a try of its own."""
        positions: list[int] = []
        together = False
        for place in places:
            if place < 0:
                positions.append(self._others[-place - 1])
            else:
                run = self._runs[place - 1]
                positions += run.commits
                # Perhaps not all of it: two writers may have left the same events.
                together = together or len(run.commits) > 1
        return sorted(positions), together


def _fold_columns(runs: Sequence[AppendRun]) -> list[list[Any]]:
    firsts, lasts = [run.first for run in runs], [run.events[-1] for run in runs]
    owned = [(place, event) for place, run in enumerate(runs, 1) for event in run.events]
    return [
        [append.stream for append in firsts],
        [append.expect_seq for append in firsts],
        [append.epoch for append in firsts],
        [append.expect_hash for append in firsts],
        [event.seq for event in lasts],
        [event.hash for event in lasts],
        [run.last.at for run in runs],
        [place for place, _ in owned],
        *_event_columns([event for _, event in owned]),
        [run.last.seal for run in runs],
    ]


def _each_columns(commits: Sequence[Commit]) -> list[list[Any]]:
    appends = [append for commit in commits for append in commit.appends]
    blobs = [blob for commit in commits for blob in commit.blobs]
    lasts = [append.events[-1] if append.events else None for append in appends]
    return [
        sorted({stream for commit in commits for stream in (*commit.wakes, *(a.stream for a in commit.appends))}),
        _ends(len(commit.appends) for commit in commits),
        [commit.at for commit in commits],
        [append.stream for append in appends],
        [append.kind for append in appends],
        [append.expect_seq for append in appends],
        [append.epoch for append in appends],
        [append.expect_hash for append in appends],
        [append.expect_wakes for append in appends],
        [last.seq if last else append.expect_seq for last, append in zip(lasts, appends, strict=True)],
        [last.hash if last else None for last in lasts],
        [append.at for append in appends],
        [_patch(append) for append in appends],
        _ends(len(append.events) for append in appends),
        *_event_columns([event for append in appends for event in append.events]),
        _ends(len(commit.wakes) for commit in commits),
        [stream for commit in commits for stream in commit.wakes],
        _ends(len(commit.blobs) for commit in commits),
        [blob.digest for blob in blobs],
        [blob.data for blob in blobs],
        [blob.until for blob in blobs],
        [append.seal for append in appends],
    ]


def _event_columns(events: Sequence[Event]) -> list[list[Any]]:
    return [
        [event.seq for event in events],
        [event.kind for event in events],
        [event.at for event in events],
        [event.data for event in events],
        [event.hash for event in events],
    ]


def apart(commit: Commit, other: Commit) -> bool:
    """Return whether two commits are written by statements of their own."""
    return commit.aside != other.aside or commit.unleased or other.unleased


def _ends(counts: Iterable[int]) -> list[int]:
    """Return where each one's part of the next columns ends."""
    ends, end = [], 0
    for count in counts:
        end += count
        ends.append(end)
    return ends


def _patch(append: Append) -> str:
    """Return what changes in the head, as JSON: only what is set is there."""
    patch = append.patch
    if patch is NO_PATCH:
        return "{}"
    text = msgspec.json.encode(patch).decode()
    if append.kind != KIND or patch.labels is msgspec.UNSET:
        return text
    labels = entries(patch.labels)
    return f'{text[:-1]},"entries":{msgspec.json.encode(labels).decode()}}}' if labels or append.expect_seq else text


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

    def __init__(self, link: PostgresLink, written: Callable[[bool], None]) -> None:
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
        group = CommitGroup(commits)
        errors: list[JournalError | None] = [None] * len(commits)
        refused, one_by_one = group.refused(await self._send(group))
        for index in refused:
            commit = commits[index]
            errors[index] = (await self._outcomes([commit]))[0] if one_by_one else _conflict(commit)
        return errors

    async def _send(self, group: CommitGroup) -> list[int]:
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
