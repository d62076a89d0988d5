"""The tables, and how an older file becomes a newer one.

`heads.id` keeps stream names out of the events table, and ends every index on heads, so that lists come out newest
first; `events` is a rowid table, so that it grows at its end and stays dense, with one narrow index to find a stream.
Every migration runs in one transaction with the version it leads to.

A transaction: everything between its begin and its end happens, or nothing.
"""

from __future__ import annotations

from typing import Any, Final

import apsw
import msgspec

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.labels import KIND, entries
from remit.journal.port import newer


class Transaction:
    """Transactions that may write, one at a time; rolled back on any error."""

    __slots__ = ("_db",)

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if kind is None:
            try:
                self._db.execute("COMMIT")
            except BaseException:
                self.roll_back()
                raise
        else:
            self.roll_back()

    def roll_back(self) -> None:
        """End it without a trace, where there is one: an interrupt may come between its begin and its block."""
        # SQLite ends a transaction by itself after some errors, such as a full disk.
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


APPLICATION_ID: Final = 0x524D4954
"""`RMIT`, in the file's header, so that a foreign database is never taken for a journal."""

LABELS: Final = ("remit.name", "remit.retry_of", "remit.continues")
"""Labels by whose value streams are looked for, however many there are: each has an index."""


_UNLABELED: Final = 9
"""The version of the schema that had no index of the other labels of jobs yet."""


def label(key: str) -> str:
    """The value of one of these labels, in the words of its index."""
    return f"labels ->> '$.\"{key}\"'"


MIGRATIONS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE heads (
        id INTEGER PRIMARY KEY,
        stream TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT '',
        seq INTEGER NOT NULL,
        epoch INTEGER NOT NULL DEFAULT 0,
        hash BLOB NOT NULL,
        lease_owner TEXT,
        lease_until INTEGER,
        due_at INTEGER,
        priority INTEGER NOT NULL DEFAULT 0,
        wakes INTEGER NOT NULL DEFAULT 0,
        closed INTEGER NOT NULL DEFAULT 0,
        title TEXT NOT NULL DEFAULT '',
        labels TEXT NOT NULL DEFAULT '{}',
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX heads_due ON heads (kind, priority, due_at) WHERE due_at IS NOT NULL AND NOT closed;
    CREATE INDEX heads_kind ON heads (kind);
    CREATE INDEX heads_state ON heads (kind, state);
    CREATE INDEX heads_leased ON heads (kind, lease_until) WHERE lease_owner IS NOT NULL AND NOT closed;
    CREATE TABLE events (
        position INTEGER PRIMARY KEY,
        stream INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL,
        at INTEGER NOT NULL,
        data BLOB NOT NULL,
        hash BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX events_stream ON events (stream, seq);
    CREATE TABLE blobs (
        digest TEXT PRIMARY KEY,
        data BLOB NOT NULL,
        at INTEGER NOT NULL,
        until INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blobs_until ON blobs (until) WHERE until IS NOT NULL;
    """,
    """
    ALTER TABLE heads ADD COLUMN route TEXT NOT NULL DEFAULT '';
    DROP INDEX heads_due;
    CREATE INDEX heads_due ON heads (kind, route, priority, due_at) WHERE due_at IS NOT NULL AND NOT closed;
    """,
    """
    ALTER TABLE heads ADD COLUMN subject TEXT NOT NULL DEFAULT '';
    CREATE INDEX heads_subject ON heads (subject) WHERE subject <> '';
    """,
    """
    ALTER TABLE heads ADD COLUMN seal BLOB NOT NULL DEFAULT x'';
    """,
    """
    CREATE INDEX heads_name ON heads (labels ->> '$."remit.name"') WHERE labels ->> '$."remit.name"' IS NOT NULL;
    CREATE INDEX heads_retry_of ON heads (labels ->> '$."remit.retry_of"')
        WHERE labels ->> '$."remit.retry_of"' IS NOT NULL;
    CREATE INDEX heads_continues ON heads (labels ->> '$."remit.continues"')
        WHERE labels ->> '$."remit.continues"' IS NOT NULL;
    """,
    "SELECT 'a Remit before this one does not look whether the journal moved'",
    """
    CREATE TABLE folds (name TEXT PRIMARY KEY, position INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
    """,
    "SELECT 'a Remit before this one takes a stream that was pruned for a damaged one'",
    """
    ALTER TABLE heads ADD COLUMN share TEXT NOT NULL DEFAULT '';
    CREATE INDEX heads_share ON heads (kind, route, priority, share, due_at)
        WHERE due_at IS NOT NULL AND NOT closed;
    """,
    """
    CREATE TABLE labels (
        head INTEGER NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        type TEXT,
        size REAL,
        PRIMARY KEY (head, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX labels_value ON labels (key, value, head);
    CREATE INDEX labels_size ON labels (key, type, size, head) WHERE type IS NOT NULL;
    """,
)
"""Script n leads from schema version n to n + 1."""

VERSION: Final = len(MIGRATIONS)
_LABELED: Final = "SELECT id, labels FROM heads WHERE kind = ?"
_UNLABEL: Final = "DELETE FROM labels WHERE head = ? AND key NOT IN (SELECT value FROM json_each(?))"
_LABEL: Final = """
INSERT INTO labels VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET value = excluded.value, type = excluded.type, size = excluded.size
WHERE value <> excluded.value
"""
_FACTS: Final = """
SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), count(*),
    coalesce(sum(type IN ('trigger', 'view')), 0) FROM sqlite_schema
"""
"""In one statement, so that all are of one moment: another process may be making the journal right now."""


def check(connection: apsw.Connection) -> None:
    """Refuse what must not be touched; changes nothing.

    Raises JournalError: JOURNAL_NEWER for a file of a newer Remit, JOURNAL_CORRUPT for something that is not a journal.
    """
    version, application, tables, foreign = connection.execute(_FACTS).get
    if application != APPLICATION_ID and (application or version or tables):
        msg = "the file is a database of another program, not a Remit journal"
        raise JournalError(msg, code=Code.JOURNAL_CORRUPT, remedy="Name another file for the journal.")
    if foreign:
        msg = "the journal has a trigger or a view, which Remit never creates: it could change the record"
        raise JournalError(msg, code=Code.JOURNAL_CORRUPT, remedy="Restore the journal from a backup.")
    if version > VERSION:
        raise newer(version, VERSION)


def _relabel(connection: apsw.Connection) -> None:
    rows: list[Any] = connection.execute(_LABELED, (KIND,)).fetchall()
    for head, text in rows:
        index(connection, head, msgspec.json.decode(text))


def index(connection: apsw.Connection, head: int, labels: dict[str, str]) -> None:
    """Keep the labels of a head where they are looked for; what stays the same is not written."""
    rows = entries(labels)
    connection.execute(_UNLABEL, (head, msgspec.json.encode([*rows]).decode()))
    for key, entry in rows.items():
        connection.execute(_LABEL, (head, key, *entry))


def is_current(connection: apsw.Connection) -> bool:
    """Return whether a file has today's schema."""
    return _pragma(connection, "user_version") == VERSION


def is_outdated(connection: apsw.Connection) -> bool:
    """Return whether a file is a journal of an older schema."""
    return _pragma(connection, "application_id") == APPLICATION_ID and _pragma(connection, "user_version") < VERSION


def migrate(connection: apsw.Connection) -> None:
    """Bring a checked file to today's schema; of several processes that try, one does it."""
    if is_current(connection):
        return
    with Transaction(connection):
        check(connection)
        version = _pragma(connection, "user_version")
        for script in MIGRATIONS[version:]:
            connection.execute(script)
        if 0 < version <= _UNLABELED:
            _relabel(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _pragma(connection: apsw.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").get)
