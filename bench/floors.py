"""The floors: what bare SQLite does with the same bytes, durably or not, and reading them alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from hashlib import sha256
from pathlib import Path

import apsw
import msgspec

from bench.measure import Reading, Watch
from remit.clock import SystemClock
from remit.journal.journal import Journal
from remit.journal.kinds import decode
from remit.journal.sqlite.store import SqliteStore

ROW = b"x" * 400
"""About what the two events of a step weigh."""
_GROUP = 64


def _open(folder: Path, name: str, synchronous: str) -> apsw.Connection:
    path = folder / f"floor-{name}.db"
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL").get  # noqa: B018 - runs it
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("CREATE TABLE rows (stream INTEGER, seq INTEGER, data BLOB)")
    db.execute("CREATE UNIQUE INDEX rows_at ON rows (stream, seq)")
    return db


async def one_transaction_each(folder: Path, count: int, synchronous: str) -> Reading:
    """Rows per second, each in a transaction of its own."""
    db = _open(folder, f"single-{synchronous}", synchronous)
    watch = Watch()
    for seq in range(count):
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO rows VALUES (1, ?, ?)", (seq, ROW))
        db.execute("COMMIT")
    rate = watch.rate(count)
    db.close()
    return rate


async def grouped(folder: Path, count: int, group: int, synchronous: str = "FULL") -> Reading:
    """Rows per second, so many in a transaction."""
    db = _open(folder, f"grouped-{synchronous}", synchronous)
    watch = Watch()
    for start in range(0, count, group):
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO rows VALUES (1, ?, ?)", ((start + i, ROW) for i in range(group)))
        db.execute("COMMIT")
    rate = watch.rate(count)
    db.close()
    return rate


async def chained(folder: Path, count: int, events: int) -> Reading:
    """Processor time of so many events encoded, hashed onto the one before and written, 64 in a transaction."""
    db, encode, previous, data = _open(folder, "chained", "FULL"), msgspec.json.Encoder().encode, b"", ROW[::2].decode()
    watch = Watch()
    for start in range(0, count * events, _GROUP):
        rows = []
        for seq in range(start, min(start + _GROUP, count * events)):
            encoded = encode({"seq": seq, "data": data})
            previous = sha256(previous + encoded).digest()
            rows.append((seq, encoded))
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO rows VALUES (1, ?, ?)", rows)
        db.execute("COMMIT")
    used = watch.processor_micros(count)
    db.close()
    return used


async def decoded(path: str, count: int, read: Callable[[Watch], Reading], kinds: Collection[str] = ()) -> Reading:
    """Read and decode the events of a journal, `count` of `kinds` or of all; `read` takes the time."""
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    try:
        watch, position, more, events = Watch(), 0, True, 0
        while more:
            page = await journal.scan(position, kinds, 5_000)
            events += sum(decode(row.event.kind, row.event.data) is not None for row in page.events)
            position, more = page.position, page.more
        taken = read(watch)
    finally:
        await journal.close()
    assert events == count
    return taken
