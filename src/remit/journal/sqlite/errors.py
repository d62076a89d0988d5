"""The errors of SQLite and of the file system, as the journal raises them."""

from __future__ import annotations

from typing import Final

import apsw

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.sqlite.connection import EMPTY, FULL

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


class Translation:
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
