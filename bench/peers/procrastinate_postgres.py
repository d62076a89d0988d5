"""Procrastinate on PostgreSQL, with the server beside it: jobs that do nothing, in one process or several."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from procrastinate import App, PsycopgConnector

from bench.peers.postgres import Database, database
from bench.peers.program import EACH, JOBS, MOST, TICKETS, WORKERS, Meter, asked
from bench.peers.workers import Start, ready


def _opened(url: str) -> tuple[App, Any]:
    """Give an app and its only task."""
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=WORKERS))

    @app.task(name="look", pass_context=False)
    async def look(what: str) -> str:
        return what.upper()

    return app, look


async def _run(app: App, concurrency: int) -> None:
    """Work until no job is due."""
    await app.run_worker_async(wait=False, concurrency=concurrency, install_signal_handlers=False, listen_notify=False)


async def _done(app: App, jobs: int) -> None:
    """Wait until so many jobs have succeeded."""
    count = "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status = 'succeeded'"
    while (await app.connector.execute_query_one_async(count))["jobs"] < jobs:  # noqa: ASYNC110 - the queue does not tell
        await asyncio.sleep(0.01)  # noqa: TID251 - the queue does not tell


async def _tickets(place: Database) -> None:
    app, look = _opened(place.url)
    meter = Meter(place.server.cpu)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await look.batch_defer_async(*({"what": "x"} for _ in range(TICKETS)))
        meter.start()
        await _run(app, WORKERS)
        await _done(app, TICKETS)
        meter.stop(TICKETS)


async def _work(start: Start, url: str, concurrency: int) -> None:
    app, _look = _opened(url)
    async with app.open_async():
        await asyncio.to_thread(start.wait)
        await _run(app, concurrency)


def _worker(start: Start, url: str, concurrency: int) -> None:
    asyncio.run(_work(start, url, concurrency))


async def _workers(count: int, place: Database) -> None:
    app, look = _opened(place.url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await look.batch_defer_async(*({"what": "x"} for _ in range(JOBS * EACH)))
        with ready(count, _worker, place.url, JOBS // count) as processes:
            meter = Meter(lambda: place.server.cpu() + processes.cpu())
            meter.start()
            processes.begin()
            await _done(app, JOBS * EACH)
            meter.stop(JOBS * EACH)


def tickets(place: Database) -> None:
    """Measure so many jobs, worked off at once."""
    asyncio.run(_tickets(place))


def workers(count: int, place: Database) -> None:
    """Measure a job for each step, on so many processes: a job of Procrastinate has no steps that are kept."""
    asyncio.run(_workers(count, place))


def main(workload: Callable[[Database], None], _folder: Path) -> None:
    """Measure."""
    with database() as place:
        workload(place)


if __name__ == "__main__":
    asked({"tickets": tickets} | {f"workers-{count}": partial(workers, count) for count in range(1, MOST + 1)}, main)
