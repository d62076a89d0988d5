"""PostgreSQL's errors as ours: one table by SQLSTATE (style: foreign errors, one table per adapter)."""

from __future__ import annotations

import ssl
from typing import Final

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.postgres.functions import ENDED, HELD
from remit.journal.standing import busy, refusal

_SERVER: Final = "Check that the server runs and can be reached, then resume; nothing recorded was lost."
_LOGIN: Final = "Check user, password and database in the journal's URL."
_FILES: Final = (
    "There is no such socket or file: check host, sslrootcert, sslcert and sslkey in the journal's URL, "
    "and that the server runs."
)
_TLS: Final = (
    "Check the server's certificate, and sslmode and sslrootcert in the journal's URL; nothing recorded was lost."
)
_URL: Final = "Correct the part of the journal's URL that is named, or leave it out."
_ALLOW: Final = "Give the journal's user write access, or use another server."
_GRANT: Final = (
    "Grant the journal's user CREATE on the database to create the schema. If the schema exists, grant USAGE on it "
    "and its sequences, and SELECT, INSERT, UPDATE and DELETE on its tables."
)
_FREE: Final = "Free space on the server's disk, then resume; nothing recorded was lost."
_RESTORE: Final = "Restore the journal from a backup; `remit doctor` shows what can be read."
_HEAR: Final = (
    "The NOTIFY queue is full: end the listening session that is idle in a transaction, check with SELECT "
    "pg_notification_queue_usage(), then resume. Nothing recorded was lost."
)
_VALUE: Final = "Nothing was recorded. Fix the value that the message names."
_UNKNOWN: Final = "It is unknown whether the last commit was recorded; `remit show` tells once the server answers."

_TABLE: Final[tuple[tuple[str, Code, str], ...]] = (
    ("25006", Code.JOURNAL_READ_ONLY, _ALLOW),  # a read-only transaction: a standby, or set so
    ("42501", Code.JOURNAL_READ_ONLY, _GRANT),
    ("28", Code.JOURNAL_IO, _LOGIN),
    ("3D", Code.JOURNAL_IO, _LOGIN),
    ("53100", Code.JOURNAL_FULL, _FREE),
    ("55P03", Code.JOURNAL_LOCKED, "End the program that holds the lock, then try again."),
    ("22", Code.RECORD_INVALID, _VALUE),
    ("23", Code.RECORD_INVALID, _VALUE),
    ("54", Code.RECORD_INVALID, _VALUE),
    ("XX001", Code.JOURNAL_CORRUPT, _RESTORE),
    ("XX002", Code.JOURNAL_CORRUPT, _RESTORE),
)
"""By SQLSTATE or its beginning."""
_UNFIT: Final = ("42704", "22023", "55P02")
"""A setting of the session is unknown to the server, has a value that it cannot have, or cannot be set."""
_LOST: Final = ("08", "57P", "53300")
"""The server is not there, is going down or coming up, or takes no more connections: it is asked again."""


def lost(error: BaseException) -> bool:
    """Return whether the connection is gone, rather than what was sent being wrong."""
    return isinstance(error, OSError | EOFError | TimeoutError) or state_of(error).startswith(_LOST) or _closed(error)


def again(error: BaseException) -> bool:
    """Return whether the server undid a transaction only because of others at the same time."""
    return state_of(error) in {"40P01", "40001"}


def wrong_url(error: BaseException, where: str) -> JournalError | None:
    """Return what to raise where no connection was made because of what the URL says; None where it is not to blame."""
    # Nothing is encoded yet: a ValueError comes from reading the URL, or is an OSError of TLS.
    unread = isinstance(error, ValueError) and not isinstance(error, OSError)
    if not unread and state_of(error) not in _UNFIT:
        return None
    why, *_hints = str(error).split("\n")  # which name parameters of the driver, not what stands in a URL
    return JournalError(f"{where}: {why}", code=Code.SETTINGS_INVALID, remedy=_URL)


def translated(error: BaseException, where: str, *, unknown: bool = False) -> JournalError:
    """The JournalError to raise; `unknown`: it came in the middle of a commit that could not be asked about."""
    state = state_of(error)
    if _untold(error):
        return JournalError(f"{where}: {error}", code=Code.JOURNAL_IO, remedy=_HEAR)
    if state in {ENDED, HELD}:
        first, _, rest = str(error).partition(" ")
        return refusal(where, first, rest) if state == ENDED else busy(int(first), rest)
    for begins, code, remedy in _TABLE:
        if state.startswith(begins):
            return JournalError(f"{where}: {code.meaning} ({error})", code=code, remedy=remedy)
    if isinstance(error, ssl.SSLError):  # one that is a ValueError as well, where a certificate is refused
        return JournalError(f"{where}: {error}", code=Code.JOURNAL_IO, remedy=_UNKNOWN if unknown else _TLS)
    if isinstance(error, ValueError | TypeError):  # the driver could not encode it
        return JournalError(f"{where}: {error}", code=Code.RECORD_INVALID, remedy=_VALUE)
    why = str(error) or ("no answer came in time" if isinstance(error, TimeoutError) else type(error).__name__)
    known = _FILES if isinstance(error, FileNotFoundError) else _SERVER
    return JournalError(f"{where}: {why}", code=Code.JOURNAL_IO, remedy=_UNKNOWN if unknown else known)


def state_of(error: BaseException) -> str:
    """The SQLSTATE; empty for errors that did not come from the server."""
    return str(getattr(error, "sqlstate", None) or "")


def _untold(error: BaseException) -> bool:
    """Return whether the server's queue of notifications is full, which has no SQLSTATE of its own."""
    return state_of(error) == "54000" and getattr(error, "server_source_filename", None) == "async.c"


def _closed(error: BaseException) -> bool:
    """The driver's own words, without SQLSTATE, for a connection that ended or on which a farewell came in."""
    name = type(error).__name__
    return name == "InternalClientError" or (name == "InterfaceError" and "clos" in str(error))
