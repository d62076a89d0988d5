"""A journal's file, as it is found, made and opened: private to its user, checked before it is touched, in WAL mode.

The errors of SQLite and of the file system, as the journal raises them.

A journal's file read as it stands: on read-only media, on a full disk, of someone else, or of an older Remit.

    another process has it open     through its shared memory, as SQLite does
    a log lies beside it            the log is read too; its index is kept in memory
    nothing lies beside it          the file is all there is (`immutable`)
    an older Remit made it          a copy in memory, in today's schema

Nothing is made or changed beside it. In the last three cases SQLite does not see what others write, so the file is
looked at before and after each read, and opened again when it changed: nothing old is shown.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import (
    monotonic,
    sleep,  # noqa: TID251 - real time: another process holds the lock
)
from typing import Final, TypeVar
from urllib.parse import quote

import apsw

from remit.codes import Code
from remit.errors import JournalError, StateError, UsageError
from remit.journal.sqlite.schema import check, is_current, is_outdated, migrate

MEMORY: Final = ":memory:"
EMPTY: Final = ":memory:?mode=ro"
"""Stands in for a journal that is not there yet: it holds nothing, and takes nothing, which would be lost."""
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a file system that has no room."""
_STATEMENTS: Final = 256
"""Prepared statements kept; there are fewer shapes than that."""
_OURS: Final = ".remit"
"""The folder of the default journal: what is in it is recorded as it is, secrets too, and kept out of git."""
_PAUSE_S: Final = 0.002
"""Between two attempts to switch to write-ahead logging."""


def open_writer(path: str, *, busy_ms: int, vfs: str = "") -> apsw.Connection:
    """The storage's one connection that writes; makes the file where it is missing.

    Raises apsw.Error or OSError, and JournalError where the file is no journal, of a newer Remit, or only readable.
    """
    in_memory = path in {MEMORY, EMPTY}
    if not in_memory:
        _make_private(Path(path))
    db = _open(MEMORY if in_memory else path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, busy_ms, vfs)
    with _closed_on_error(db):
        # Looked at before anything is set: another program's database, or a newer journal, stays as it is.
        check(db)
        if not in_memory:
            _use_wal(db, busy_ms)
        migrate(db)
        # What is erased is overwritten, not only forgotten.
        db.execute("PRAGMA secure_delete = 1")
        if path == EMPTY:
            db.execute("PRAGMA query_only = 1")
    return db


def open_reader(path: str, *, busy_ms: int, vfs: str = "") -> apsw.Connection:
    """A connection that only reads, beside the one that writes."""
    db = _open(path, apsw.SQLITE_OPEN_READWRITE, busy_ms, vfs)
    with _closed_on_error(db):
        db.execute("PRAGMA query_only = 1")
    return db


def copy_file(source: apsw.Connection, target: str, now: int) -> None:
    """Write a journal to a new file as of one moment, in which every lease has lapsed; its writers wait for nothing.

    Raises UsageError or StateError (DISK_FULL) where the target cannot be written, and apsw.Error.
    """
    try:
        _make(Path(target))
        with contextlib.closing(apsw.Connection(target)) as copy:
            with copy.backup("main", source, "main") as backup:
                backup.step()  # all of it in one read, which writers do not begin again
            copy.execute(
                "UPDATE heads SET lease_until = ?1, due_at = ?1 "
                "WHERE lease_owner IS NOT NULL AND NOT closed AND lease_until > ?1",
                (now - 1,),
            )
    except apsw.FullError as error:
        raise _no_room(target) from error
    except OSError as error:
        if error.errno in FULL:
            raise _no_room(target) from error
        reason = f"{Path(target).parent}: {error.strerror}"
        raise UsageError(reason, remedy="Name a file in a folder that exists and can be written to.") from error


def _no_room(target: str) -> StateError:
    reason = f"{target}: the disk is full; the journal has nothing to do with it"
    return StateError(reason, code=Code.DISK_FULL, remedy="Free space there, or name a file on another disk.")


def in_use(path: str) -> bool:
    """Say whether a connection of any process has a journal's file open: each shares a lock on it in WAL mode."""
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    except apsw.BusyError:
        return True
    except apsw.Error:
        return False  # what is wrong with it is said where it is opened
    finally:
        db.close()
    return False


def _open(path: str, flags: int, busy_ms: int, vfs: str) -> apsw.Connection:
    db = apsw.Connection(path, flags=flags, vfs=vfs or None, statementcachesize=_STATEMENTS)
    db.set_busy_timeout(busy_ms)
    # Nothing in a file's schema may call functions: the file may come from anyone.
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    return db


@contextlib.contextmanager
def _closed_on_error(db: apsw.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


def _use_wal(db: apsw.Connection, busy_ms: int) -> None:
    if db.readonly("main"):
        raise apsw.ReadOnlyError("attempt to write a readonly database")
    mode = _switched(db, monotonic() + busy_ms / 1_000)
    if mode != "wal":
        msg = f"{db.filename}: the file system offers no shared memory, so the journal stays in {mode} mode"
        raise JournalError(msg, code=Code.JOURNAL_IO, remedy="Put the journal on a local disk.")
    # On macOS a plain flush leaves data in the drive's own cache; elsewhere these two change nothing.
    db.execute("PRAGMA fullfsync = 1")
    db.execute("PRAGMA checkpoint_fullfsync = 1")


def _switched(db: apsw.Connection, until: float) -> object:
    """Switch to write-ahead logging; the mode in force then.

    While another process switches, SQLite answers that it is busy without waiting: that would be a deadlock.
    """
    while True:
        try:
            return db.execute("PRAGMA journal_mode = WAL").get
        except apsw.BusyError:
            if monotonic() >= until:
                raise
            sleep(_PAUSE_S)


def _make_private(path: Path) -> None:
    """Make the folder and an empty file where they are missing, so that other users cannot read what is recorded.

    SQLite gives the file's mode to the ones it puts beside it. An existing file is left alone: closing any descriptor
    of it would drop the locks that another connection of this process holds on it.
    """
    _make_folder(path.parent)
    if path.parent.name == _OURS:
        _make(path.parent / ".gitignore", b"*\n!*.schema.json\n")
    _make(path)


def _make(path: Path, content: bytes = b"") -> None:
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        _flush(folder.parent)


def _flush(folder: Path) -> None:
    """Let the new entry of a folder survive a loss of power, where the folder can be read at all."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_UNLOCK: Final = "End the program that holds the file's lock, then try again."
_ALLOW: Final = "Make the file and its folder writable, or choose another journal."
_FOLDER: Final = "Check that the folder exists and is writable, or choose another journal."
_FREE: Final = "Free space on the disk, then resume; nothing recorded was lost."
_RESTORE: Final = "Restore the journal from a backup; `remit doctor` shows what can be read."
_FOREIGN: Final = "The file is not a journal; choose another one."
_DISK: Final = "Check the disk, then resume; nothing recorded was lost."
_VALUE: Final = "Nothing was recorded. Fix the value that the message names."
_REOPEN: Final = "Open it again."
_MAKE: Final = "The first `remit run`, `worker` or `serve` here makes it."

_TABLE: Final[tuple[tuple[type[apsw.Error], Code, str], ...]] = (
    (apsw.BusyError, Code.JOURNAL_LOCKED, _UNLOCK),
    (apsw.LockedError, Code.JOURNAL_LOCKED, _UNLOCK),
    (apsw.ReadOnlyError, Code.JOURNAL_READ_ONLY, _ALLOW),
    (apsw.CantOpenError, Code.JOURNAL_READ_ONLY, _FOLDER),
    (apsw.PermissionsError, Code.JOURNAL_READ_ONLY, _ALLOW),
    (apsw.FullError, Code.JOURNAL_FULL, _FREE),
    (apsw.CorruptError, Code.JOURNAL_CORRUPT, _RESTORE),
    (apsw.NotADBError, Code.JOURNAL_CORRUPT, _FOREIGN),
    (apsw.IOError, Code.JOURNAL_IO, _DISK),
    (apsw.TooBigError, Code.RECORD_INVALID, _VALUE),
    (apsw.ConstraintError, Code.RECORD_INVALID, _VALUE),
    (apsw.MismatchError, Code.RECORD_INVALID, _VALUE),
    (apsw.ConnectionClosedError, Code.JOURNAL_CLOSED, _REOPEN),
)
_NO_SPACE: Final = ((apsw.IOError, Code.JOURNAL_FULL, _FREE),)
"""The shared memory beside the file could not grow: nothing else is as small and fails first."""


class SqliteErrors:
    """Raises errors of SQLite and of the file system as JournalError; may be entered again and again."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing: errors are what it is for."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, apsw.Error | OSError):
            raise translated(error, self._path) from error


def translated(error: apsw.Error | OSError, path: str) -> JournalError:
    """The JournalError to raise from an error of SQLite or of the file system."""
    if isinstance(error, OSError):
        code, remedy = (Code.JOURNAL_FULL, _FREE) if error.errno in FULL else (Code.JOURNAL_READ_ONLY, _FOLDER)
        return JournalError(f"{path}: {code.meaning} ({error})", code=code, remedy=remedy)
    if path == EMPTY and isinstance(error, apsw.ReadOnlyError):
        return JournalError("there is no journal here to write to", code=Code.JOURNAL_MISSING, remedy=_MAKE)
    for kind, code, remedy in _NO_SPACE if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE else _TABLE:
        if isinstance(error, kind):
            return JournalError(f"{path}: {code.meaning} ({error})", code=code, remedy=remedy)
    return JournalError(f"{path}: {error}", code=Code.JOURNAL_IO, remedy="Run `remit doctor`.")


T = TypeVar("T")
_LOOKED_AT: Final = frozenset({Code.JOURNAL_READ_ONLY, Code.JOURNAL_FULL})
"""Codes with which writing is refused and reading may not be."""
_ATTEMPTS: Final = 5
_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_STALE: Final = "The file changes while it is read. Try again, or read it where it is written."
Stamp = tuple[tuple[int, int, int], ...]


class ReadConnection:
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
        paths = (self._beside(ending) for ending in ("", "-wal"))
        states = (path.stat() for path in paths if path.exists())
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


def instead(refused: JournalError, path: str, busy_ms: int) -> ReadConnection:
    """Return what reads a file that could not be opened to write. Raises what that was refused with if nothing does."""
    if refused.code not in _LOOKED_AT:
        raise refused
    try:
        return ReadConnection(path, busy_ms)
    except (apsw.Error, OSError):
        raise refused from None


def _in_memory(source: apsw.Connection) -> apsw.Connection:
    copy = apsw.Connection(":memory:")
    with copy.backup("main", source, "main") as backup:
        backup.step()
    source.close()
    migrate(copy)
    return copy
