"""A journal's file, as it is found, made and opened: private to its user, checked before it is touched, in WAL mode."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep  # noqa: TID251 - real time: another process holds the lock
from typing import Final

import apsw

from remit.codes import Code
from remit.errors import JournalError, StateError, UsageError
from remit.journal.sqlite.schema import check, migrate

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
        why = f"{Path(target).parent}: {error.strerror}"
        raise UsageError(why, remedy="Name a file in a folder that exists and can be written to.") from error


def _no_room(target: str) -> StateError:
    why = f"{target}: the disk is full; the journal has nothing to do with it"
    return StateError(why, code=Code.DISK_FULL, remedy="Free space there, or name a file on another disk.")


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
