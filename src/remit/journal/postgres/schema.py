"""The tables, and how an older schema becomes a newer one.

`heads` leaves room in its pages and keeps what appends change out of its indexes, so that a head moves without touching
one. Migrations change tables; the functions (functions.py) are made anew after them. A function that got other
arguments stays beside the new one: processes of an older Remit that still run go on with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.postgres.functions import FUNCTIONS

if TYPE_CHECKING:
    import asyncpg

_TABLES: Final = """
CREATE TABLE heads (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream text COLLATE "C" NOT NULL UNIQUE,
    kind text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT '',
    seq bigint NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    hash bytea NOT NULL,
    lease_owner text,
    lease_until bigint,
    due_at bigint,
    priority bigint NOT NULL DEFAULT 0,
    wakes bigint NOT NULL DEFAULT 0,
    closed boolean NOT NULL DEFAULT false,
    title text NOT NULL DEFAULT '',
    labels jsonb NOT NULL DEFAULT '{}',
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX heads_due ON heads (kind, priority, due_at, id) WHERE due_at IS NOT NULL AND NOT closed;
CREATE INDEX heads_kind ON heads (kind, id);
CREATE INDEX heads_state ON heads (kind, state, id);
CREATE INDEX heads_leased ON heads (kind, lease_until) WHERE lease_owner IS NOT NULL AND NOT closed;
CREATE INDEX heads_labels ON heads USING gin (labels jsonb_path_ops);
CREATE TABLE events (
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (stream, seq)
);
CREATE TABLE blobs (digest text COLLATE "C" PRIMARY KEY, data bytea NOT NULL, at bigint NOT NULL, until bigint);
CREATE INDEX blobs_until ON blobs (until) WHERE until IS NOT NULL;
CREATE TABLE writers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    groups bigint NOT NULL DEFAULT 0,
    refused int[] NOT NULL DEFAULT '{}',
    at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 20);
"""

_ROUTES: Final = """
ALTER TABLE heads ADD COLUMN route text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX heads_due;
CREATE INDEX heads_due ON heads (kind, route, priority, due_at, id) WHERE due_at IS NOT NULL AND NOT closed;
"""

MIGRATIONS: Final = (_TABLES, _ROUTES)
"""Script n leads from schema version n to n + 1."""
VERSION: Final = len(MIGRATIONS)


async def migrate(connection: asyncpg.Connection, schema: str) -> None:
    """Make the schema, or bring it to today's version; of several processes that try, one does it.

    Raises JournalError: JOURNAL_NEWER for a schema of a newer Remit, JOURNAL_CORRUPT for somebody else's.
    """
    if await _version(connection) == VERSION:
        return
    async with connection.transaction():
        # Held to the end of the transaction; the number says which of all locks in the database this is.
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('remit ' || $1))", schema)
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        version = await _version(connection)
        if version is None:
            if await connection.fetchval("SELECT count(*) FROM pg_class WHERE relnamespace = $1::regnamespace", schema):
                msg = f"the schema {schema} holds tables of another program"
                raise JournalError(msg, code=Code.JOURNAL_CORRUPT, remedy="Name another one: ?schema=NAME.")
            await connection.execute("CREATE TABLE remit_version (version int NOT NULL)")
            await connection.execute("INSERT INTO remit_version VALUES (0)")
        elif version > VERSION:
            msg = f"the journal has schema {version}; this Remit knows up to {VERSION}"
            raise JournalError(msg, code=Code.JOURNAL_NEWER, remedy="Upgrade Remit, or use another journal.")
        for script in MIGRATIONS[version or 0 :]:
            await connection.execute(script)
        await connection.execute(FUNCTIONS)
        await connection.execute("UPDATE remit_version SET version = $1", VERSION)


async def _version(connection: asyncpg.Connection) -> int | None:
    """The schema's version; None where there is no journal in it."""
    if await connection.fetchval("SELECT to_regclass('remit_version')") is None:
        return None
    found: int = await connection.fetchval("SELECT version FROM remit_version")
    return found
