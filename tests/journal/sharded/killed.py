"""Moves a shard, and kills its own process on the way: FROM TO STEP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from remit.clock import SystemClock
from remit.journal.postgres import store as sending
from remit.journal.postgres.store import PostgresStore
from remit.journal.sharded.move import move_shard


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def move(source: str, target: str, step: str) -> None:
    send_table = sending._table

    async def send_or_die(begin: Any, end: Any, table: str) -> None:
        if step == table:
            die()
        await send_table(begin, end, table)

    sending._table = send_or_die
    stores = [PostgresStore(url, SystemClock()) for url in (source, target)]
    await move_shard(stores[0], stores[1], SystemClock(), None, lambda what, _done: die() if what == step else None)


if __name__ == "__main__":
    asyncio.run(move(*sys.argv[1:]))
