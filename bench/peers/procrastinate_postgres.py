"""Procrastinate on PostgreSQL, with the server beside it: jobs that do nothing, worked off by one worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from procrastinate import App, PsycopgConnector

from bench.peers.postgres import database
from bench.peers.program import TICKETS, WORKERS, Meter, asked


async def _jobs(url: str, meter: Meter) -> None:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    app = App(connector=PsycopgConnector(conninfo=url, min_size=WORKERS, max_size=WORKERS))
    done: list[str] = []

    @app.task(name="look", pass_context=False)
    async def look(what: str) -> str:
        done.append(what)
        return what.upper()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for _ in range(TICKETS):
            await look.defer_async(what="x")
        meter.start()
        await app.run_worker_async(wait=False, concurrency=WORKERS, install_signal_handlers=False, listen_notify=False)
        assert len(done) == TICKETS
        meter.stop(TICKETS)


def tickets(url: str, meter: Meter) -> None:
    """So many jobs, worked off at once."""
    asyncio.run(_jobs(url, meter))


def main(workload: Callable[[str, Meter], None], _folder: Path) -> None:
    """Measure."""
    with database() as found:
        workload(found.url, Meter(found.server.cpu))


if __name__ == "__main__":
    asked({"tickets": tickets}, main)
