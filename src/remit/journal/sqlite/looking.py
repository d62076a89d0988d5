"""A journal's file read as it stands: on read-only media, on a full disk, of someone else, or of an older Remit.

    another process has it open     through its shared memory, as SQLite does
    a log lies beside it            the log is read too; its index is kept in memory
    nothing lies beside it          the file is all there is (`immutable`)
    an older Remit made it          a copy in memory, in today's schema

Nothing is made or changed beside it. In the last three cases SQLite does not see what others write, so the file is
looked at before and after each read, and opened again when it changed: nothing old is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

import apsw

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.sqlite.schema import check, is_current, is_outdated, migrate

T = TypeVar("T")
_LOOKED_AT: Final = frozenset({Code.JOURNAL_READ_ONLY, Code.JOURNAL_FULL})
"""Codes with which writing is refused and reading may not be."""
_ATTEMPTS: Final = 5
_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_STALE: Final = "The file changes while it is read. Try again, or read it where it is written."
Stamp = tuple[tuple[int, int, int], ...]


class Look:
    """A connection that reads; one thread uses it at a time."""

    def __init__(self, path: str, busy_ms: int, *, writable: bool = False) -> None:
        self._path = Path(path)
        # All connections of a process share one mapping of the memory: one that only reads would bar those that write.
        self._shares = "" if writable else "readonly_shm=1"
        self._busy_ms = busy_ms
        self._open()

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Return what `work` reads, as the file is now.

        Raises JournalError (JOURNAL_LOCKED) if it changes all the time.
        """
        for _ in range(_ATTEMPTS):
            if not self._is_fresh():
                self.close()
                self._open()
            try:
                value = work(self._db)
            except apsw.Error:
                if self._is_fresh():
                    raise
                continue
            if self._is_fresh():
                return value
        raise JournalError(f"{self._path}: {_STALE}", code=Code.JOURNAL_LOCKED, remedy=_STALE)

    def version(self) -> object:
        """Return what is another value once someone wrote."""
        return self.read(lambda db: db.execute("PRAGMA data_version").get), self._stamp()

    def close(self) -> None:
        """Close it; may be called twice."""
        self._db.close()

    def _is_fresh(self) -> bool:
        return self._as_of is None or self._as_of == self._stamp()

    def _stamp(self) -> Stamp:
        """Size, time and number of the file and of its log."""
        found = (self._beside(ending) for ending in ("", "-wal"))
        states = (path.stat() for path in found if path.exists())
        return tuple((state.st_size, state.st_mtime_ns, state.st_ino) for state in states)

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name + ending)

    def _open(self) -> None:
        self._as_of: Stamp | None = self._stamp()
        self._db = self._shared() or self._alone()
        try:
            check(self._db)
            if not is_current(self._db):
                self._as_of = self._stamp()
                self._db = _in_memory(self._db)
        except BaseException:
            self._db.close()
            raise

    def _shared(self) -> apsw.Connection | None:
        """Return one through the shared memory of those who have the file open; None if that cannot be read."""
        if not (self._beside("-wal").exists() and self._beside("-shm").exists()):
            return None  # SQLite would make them
        db = self._connection(self._shares)
        try:
            check(db)
        except apsw.Error:
            db.close()
            return None
        self._as_of = None
        return db

    def _alone(self) -> apsw.Connection:
        log = self._beside("-wal")
        if not log.exists() or not log.stat().st_size:
            return self._connection("immutable=1")
        db = self._connection("", vfs="unix-none")
        db.execute("PRAGMA locking_mode = EXCLUSIVE")  # then the log's index is in memory
        return db

    def _connection(self, query: str, vfs: str | None = None) -> apsw.Connection:
        db = apsw.Connection(f"file:{quote(str(self._path))}?{query}", flags=_FLAGS, vfs=vfs)
        db.set_busy_timeout(self._busy_ms)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return db


def is_older(path: str) -> bool:
    """Return whether the header of a file is that of an older Remit; the log beside it may hold the upgrade."""
    try:  # by SQLite: closing another descriptor would drop the locks that this process holds on the file
        db = apsw.Connection(f"file:{quote(path)}?immutable=1", flags=_FLAGS)
    except apsw.Error:
        return False  # what is wrong with it is said where it is opened
    try:
        return is_outdated(db)
    except apsw.Error:
        return False
    finally:
        db.close()


def instead(refused: JournalError, path: str, busy_ms: int) -> Look:
    """Return what reads a file that could not be opened to write. Raises what that was refused with if nothing does."""
    if refused.code not in _LOOKED_AT:
        raise refused
    try:
        return Look(path, busy_ms)
    except (apsw.Error, OSError):
        raise refused from None


def _in_memory(source: apsw.Connection) -> apsw.Connection:
    copy = apsw.Connection(":memory:")
    with copy.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    migrate(copy)
    return copy
