"""A process that records as fast as it can until it is killed, and tells what it was promised."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection

from remit.clock import SystemClock
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit_testing.journal.storage import note

TASKS = 4


def record_until_killed(path: str, witness: Connection) -> None:
    """Entry point of the process: its parent reads from `witness` the number of acknowledged commits of each task."""
    asyncio.run(_record(path, witness))


async def _record(path: str, witness: Connection) -> None:
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    await asyncio.gather(*(_commit(journal, task, witness) for task in range(TASKS)))


async def _commit(journal: Journal, task: int, witness: Connection) -> None:
    """Commits of two events in one stream and one in another, some of them synced; those are acknowledged."""
    names = (f"job/{task}", f"job/{task}/half")
    heads = [await journal.head(name) for name in names]
    whole, half = (journal.writer(name, "job", head) for name, head in zip(names, heads, strict=True))
    while True:
        drafts = (whole.draft(note(1), note(2)), half.draft(note(3)))
        synced = half.seq % 3 == 0
        await journal.commit(*drafts, synced=synced)
        if synced:
            witness.send((task, half.seq))
