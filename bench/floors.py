"""The floors: what bare SQLite does with the same bytes, durably or not."""

from __future__ import annotations

from pathlib import Path

import apsw

from bench.measure import Reading, Watch

ROW = b"x" * 400
"""About what the two events of a step weigh."""


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
