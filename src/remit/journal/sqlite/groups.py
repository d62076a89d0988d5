"""The way that a group of commits becomes few SQL statements.

Most appends of a group follow each other on the same few streams: they are folded into one head update and one long
insert per group. That is not only less work: SQLite runs one long statement with Python's lock released, so that the
event loop goes on meanwhile. Commits that span streams, create one or wake one keep their own place and savepoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import apsw
import msgspec

from remit.errors import JournalError
from remit.journal.commit import AppendRun, conflict, folds
from remit.journal.event import Append, Blob, Commit, Cut, Event, HeadPatch
from remit.journal.labels import KIND, entries
from remit.journal.sqlite import queries
from remit.journal.sqlite.schema import Transaction
from remit.journal.sqlite.schema import index as index_labels

_CHUNKS: Final = (256, 64, 16, 8, 4, 2, 1)
"""Rows per statement: few shapes, so that every statement stays prepared."""

_HEAD: Final = """
UPDATE heads SET seq = ?, hash = ?, updated_at = ?, seal = ?{patch}
WHERE stream = ? AND seq = ? AND epoch = ? AND hash = ?{guard}
"""
_CREATE: Final = """
INSERT INTO heads (
    stream, kind, state, seq, hash, due_at, priority, closed, route, subject, title, labels,
    created_at, updated_at, seal, share
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream) DO NOTHING
"""
_WAKE: Final = """
UPDATE heads SET wakes = wakes + 1,
    due_at = CASE WHEN lease_owner IS NULL THEN min(coalesce(due_at, ?1), ?1) ELSE due_at END
WHERE stream = ?2 AND NOT closed
"""


_INSERT: Final = "INSERT INTO events (stream, seq, kind, at, data, hash) VALUES "
_ROW: Final = "(?, ?, ?, ?, ?, ?)"
_FOLDED: Final = _HEAD.format(patch="", guard="")
_BLOB: Final = """
INSERT INTO blobs (digest, data, at, until) VALUES (?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET
    data = CASE WHEN length(excluded.data) = 0 THEN excluded.data ELSE data END,
    until = CASE WHEN length(excluded.data) = 0 AND length(data) > 0 THEN NULL ELSE excluded.until END
WHERE length(excluded.data) = 0 AND length(data) > 0
    OR until IS NOT NULL AND (excluded.until IS NULL OR excluded.until > until)
"""
_BEFORE: Final = "DELETE FROM events WHERE stream = ? AND seq < ?"
_GONE: Final = "DELETE FROM blobs WHERE digest = ?"
_ID_CACHE: Final = 10_000


class GroupWriter:
    """Writes groups of commits through one connection."""

    def __init__(self, connection: apsw.Connection, url: str = "") -> None:
        self._db = connection
        self._url = url
        self._transaction = Transaction(connection)
        self._ids: dict[str, int] = {}
        self.others = 0
        """The number of times that other connections wrote to the file, when it was last looked."""

    def look(self) -> None:
        """See whether other connections wrote: a read of shared memory."""
        self.others = data_version(self._db)

    def write(self, group: Sequence[Commit]) -> list[JournalError | None]:
        """Write a group in one transaction; the outcome of each commit. Raises apsw.Error: nothing was written."""
        try:
            with self._transaction:
                return self._write(group)
        except BaseException:
            self._transaction.roll_back()
            # A stream made in vain gives its number to the next one made.
            self._ids.clear()
            raise

    def _write(self, group: Sequence[Commit]) -> list[JournalError | None]:
        errors: list[JournalError | None] = [None] * len(group)
        retired = queries.retired(self._db, self._url)
        runs: dict[str, AppendRun] = {}
        for index, commit in enumerate(group):
            refused = None if commit.aside else retired
            if commit.unleased:
                refused = queries.leased(self._db, commit.at)
            if refused is not None:
                errors[index] = refused
            elif folds(commit):
                append = commit.appends[0]
                run = runs.get(append.stream)
                if run is not None and run.takes(append):
                    run.add(append, index)
                else:
                    self._finish([run] if run else [], group, errors)
                    runs[append.stream] = AppendRun(append, index)
            else:
                self._finish([runs.pop(a.stream) for a in commit.appends if a.stream in runs], group, errors)
                errors[index] = self._alone(commit)
                retired = queries.retired(self._db, self._url) if commit.aside else retired
        self._finish(list(runs.values()), group, errors)
        return errors

    def cut(self, cut: Cut) -> bool:
        """Put stubs in the place of older events, within a transaction. Raises JournalError: it has to be undone."""
        if not cut.aside and (refused := queries.retired(self._db, self._url)) is not None:
            raise refused
        if queries.named_since(self._db, cut.names, cut.position):
            return False
        for append in cut.appends:
            if not self._append(append):
                raise conflict(append.stream)
            self._db.execute(_BEFORE, (self._id(append.stream), append.events[0].seq))
        self._db.executemany(_GONE, [(digest,) for digest in cut.blobs])
        return True

    # --- folded appends

    def _finish(self, runs: Sequence[AppendRun], group: Sequence[Commit], errors: list[JournalError | None]) -> None:
        accepted: list[Event] = []
        for run in runs:
            first, last = run.first, run.events[-1]
            head = (last.seq, last.hash, run.last.at, run.last.seal)
            self._db.execute(_FOLDED, (*head, first.stream, first.expect_seq, first.epoch, first.expect_hash))
            if self._db.changes():
                accepted += run.events
                for index in run.commits:
                    self._blobs(group[index].blobs, run.last.at)
            else:
                # Perhaps not all of it: two writers may have left the same events.
                for index in run.commits:
                    errors[index] = self._alone(group[index])
        self._insert(accepted)

    def _insert(self, events: Sequence[Event]) -> None:
        for size, start in _chunks(len(events)):
            flat: list[Any] = []
            for event in events[start : start + size]:
                flat += (self._id(event.stream), event.seq, event.kind, event.at, event.data, event.hash)
            self._db.execute(_insert_sql(size), flat)

    def _id(self, stream: str) -> int:
        number = self._ids.get(stream)
        if number is None:
            if len(self._ids) >= _ID_CACHE:
                self._ids.clear()
            number = int(self._db.execute("SELECT id FROM heads WHERE stream = ?", (stream,)).get)
            self._ids[stream] = number
        return number

    # --- commits with a place of their own

    def _alone(self, commit: Commit) -> JournalError | None:
        spans = len(commit.appends) > 1
        if spans:
            self._db.execute("SAVEPOINT spanning")
        for append in commit.appends:
            if not self._append(append):
                if spans:
                    self._undo(commit)
                return conflict(append.stream)
        if commit.blobs:
            self._blobs(commit.blobs, commit.at)
        for stream in commit.wakes:
            self._db.execute(_WAKE, (commit.at, stream))
        if spans:
            self._db.execute("RELEASE spanning")
        return None

    def _undo(self, commit: Commit) -> None:
        self._db.execute("ROLLBACK TO spanning")
        self._db.execute("RELEASE spanning")
        for append in commit.appends:
            self._ids.pop(append.stream, None)

    def _append(self, append: Append) -> bool:
        creates = append.expect_seq == 0 and append.events
        accepted = self._create(append) if creates else self._advance(append)
        if accepted:
            self._insert(append.events)
            labels = append.patch.labels
            if append.kind == KIND and labels is not msgspec.UNSET and (append.expect_seq or entries(labels)):
                index_labels(self._db, self._id(append.stream), labels)
        return accepted

    def _create(self, append: Append) -> bool:
        patch, last = append.patch, append.events[-1]
        self._db.execute(
            _CREATE,
            (
                append.stream,
                append.kind,
                _or(patch.state, ""),
                last.seq,
                last.hash,
                _or(patch.due_at, None),
                _or(patch.priority, 0),
                _or(patch.closed, default=False),
                _or(patch.route, ""),
                _or(patch.subject, ""),
                _or(patch.title, ""),
                msgspec.json.encode(_or(patch.labels, {})).decode(),
                append.at,
                append.at,
                append.seal,
                _or(patch.share, ""),
            ),
        )
        return self._db.changes() == 1

    def _advance(self, append: Append) -> bool:
        last = append.events[-1] if append.events else None
        columns, values = _patched(append.patch)
        guard = () if append.expect_wakes is None else (append.expect_wakes,)
        head = (last.seq, last.hash) if last else (append.expect_seq, None)
        sql = _head_sql(columns, guarded=bool(guard), keeps_hash=last is None)
        where = (append.stream, append.expect_seq, append.epoch, append.expect_hash, *guard)
        self._db.execute(sql, (*head, append.at, append.seal, *values, *where))
        return self._db.changes() == 1

    def _blobs(self, blobs: Sequence[Blob], at: int) -> None:
        for blob in blobs:
            self._db.execute(_BLOB, (blob.digest, blob.data, at, blob.until))


def data_version(db: apsw.Connection) -> int:
    """Return a number that is another one once other connections wrote to the file."""
    return int(db.execute("PRAGMA data_version").get)


def _patched(patch: HeadPatch) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Columns and values a patch sets."""
    columns: list[str] = []
    values: list[object] = []
    for name in ("state", "due_at", "priority", "closed", "route", "title", "share"):
        value = getattr(patch, name)
        if value is not msgspec.UNSET:
            columns.append(name)
            values.append(value)
    if patch.labels is not msgspec.UNSET:
        columns.append("labels")
        values.append(msgspec.json.encode(patch.labels).decode())
    if patch.release:
        columns += ["lease_owner", "lease_until"]
        values += [None, None]
    return tuple(columns), tuple(values)


@lru_cache(maxsize=256)
def _head_sql(columns: tuple[str, ...], *, guarded: bool, keeps_hash: bool = False) -> str:
    sql = _HEAD.format(
        patch="".join(f", {column} = ?" for column in columns), guard=" AND wakes = ?" if guarded else ""
    )
    return sql.replace("hash = ?", "hash = coalesce(?, hash)") if keeps_hash else sql


@lru_cache(maxsize=len(_CHUNKS))
def _insert_sql(rows: int) -> str:
    return _INSERT + ", ".join([_ROW] * rows)


@lru_cache(maxsize=1_024)
def _chunks(count: int) -> tuple[tuple[int, int], ...]:
    """Sizes of the statements that insert so many rows, and where each begins."""
    chunks, start = [], 0
    for size in _CHUNKS:
        while count - start >= size:
            chunks.append((size, start))
            start += size
    return tuple(chunks)


def _or(value: Any, default: Any) -> Any:
    return default if value is msgspec.UNSET else value
