"""What following takes at least on PostgreSQL: an insert that notifies, and another process that listens and reads."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from typing import Final

import asyncpg
import msgspec

from bench.floors import ROW
from bench.lab import ROOT
from remit.clock import SystemClock

_CHANNEL: Final = "appended"
_INSERT: Final = "WITH row AS (INSERT INTO rows VALUES ($1, $2, $3)) SELECT pg_notify($4, '')"


async def listened(url: str, events: int, longest_pause_s: float) -> list[float]:
    """Insert while another process listens; what it waited for each row, in milliseconds."""
    chance, clock = random.Random(5), SystemClock()
    db = await asyncpg.connect(url)
    await db.execute("CREATE TABLE rows (seq bigint PRIMARY KEY, at bigint, data bytea)")
    insert = await db.prepare(_INSERT)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.listened", url, str(events)), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    for seq in range(1, events + 1):
        await clock.sleep(chance.uniform(0, longest_pause_s))
        await insert.fetch(seq, time.monotonic_ns(), ROW, _CHANNEL)
    out, _ = await process.communicate()
    await db.close()
    return msgspec.json.decode(out, type=list[float])


async def _listener(url: str, events: int) -> None:
    """Say that it listens; after so many rows, how late each was."""
    db, reader = await asyncpg.connect(url), await asyncpg.connect(url)
    news, late = asyncio.Event(), list[float]()
    await db.add_listener(_CHANNEL, lambda *_news: news.set())
    print("listening", flush=True)
    while len(late) < events:
        await news.wait()
        news.clear()
        rows = await reader.fetch("SELECT at, data FROM rows WHERE seq > $1 ORDER BY seq", len(late))
        now = time.monotonic_ns()
        late += [(now - row[0]) / 1e6 for row in rows]
    print(msgspec.json.encode(late).decode())
    await db.close()
    await reader.close()


if __name__ == "__main__":
    asyncio.run(_listener(sys.argv[1], int(sys.argv[2])))
