"""Several worker processes on one PostgreSQL, on a server that is made for each sample.

As a program it is one of the workers: it says that it is ready, and begins when it is told.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import asyncpg
import psutil

from bench.floors import ROW
from bench.lab import DBOS_POSTGRES, PROCRASTINATE, RESTATE, ROOT, Lab
from bench.measure import Reading, Result, Watch, against
from bench.peers.postgres import database
from bench.peers.processes import Server
from bench.peers.program import EACH, JOBS, MOST
from bench.subject import read, reads
from remit import Remit
from remit.settings import load

GROUP = 64
"""Rows in a group of the floor."""


def opened(url: str, engine: str, concurrency: int) -> Remit:
    """A Remit that works on nothing yet."""
    flags = {
        "journal.url": url,
        "policy.rules": [{"effect": "allow", "tools": ["bench.*"]}],
        "jobs.engine": engine,
        "jobs.concurrency": concurrency,
    }
    return Remit(settings=load(env={}, cwd=Path.cwd(), flags=flags), tools=[read], recipes=[reads], work=False)


@asynccontextmanager
async def worker(url: str, engine: str, concurrency: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that is ready to work."""
    command = (sys.executable, "-m", "bench.workers", url, engine, str(concurrency))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield process
    finally:
        process.kill()
        await process.wait()


async def worked_off(count: int, engine: str = "local") -> Reading:
    """Steps per second of so many workers, from the moment that they are told to begin."""
    with database() as place:
        async with AsyncExitStack() as stack:
            remit = await stack.enter_async_context(opened(place.url, engine, 1))
            await asyncio.gather(*(remit.start(reads(EACH)) for _ in range(JOBS)))
            share = max(1, JOBS // count)
            workers = [await stack.enter_async_context(worker(place.url, engine, share)) for _ in range(count)]
            servers = [place.server, *(Server(psutil.Process(process.pid)) for process in workers)]
            watch = Watch(lambda: sum(server.cpu() for server in servers))
            for process in workers:
                assert process.stdin is not None
                process.stdin.write(b"\n")
            journal, mark = remit.runtime.journal, 0
            while (await journal.counts("job")).get("completed", 0) < JOBS:
                mark = await journal.changed(mark)
            return watch.rate(JOBS * EACH)


async def inserted(count: int) -> Reading:
    """Rows per second of so many connections, in groups; the floor."""
    with database() as place:
        listener = await asyncpg.connect(place.url)
        await listener.execute("CREATE TABLE rows (stream bigint, seq bigint, data bytea, PRIMARY KEY (stream, seq))")
        connections = [listener, *[await asyncpg.connect(place.url) for _ in range(count - 1)]]
        share = JOBS * EACH // count

        async def insert(stream: int, connection: asyncpg.Connection) -> None:
            put = await connection.prepare("INSERT INTO rows SELECT $1, * FROM unnest($2::bigint[], $3::bytea[])")
            for start in range(0, share, GROUP):
                await put.fetch(stream, list(range(start, start + GROUP)), [ROW] * GROUP)

        watch = Watch(place.server.cpu)
        await asyncio.gather(*(insert(stream, connection) for stream, connection in enumerate(connections)))
        rate = watch.rate(share * count)
        for connection in connections:
            await connection.close()
        return rate


async def workers_on_postgres(lab: Lab) -> list[Result]:
    """128 jobs of 50 read-only steps on 1, 2 and 4 workers, and through DBOS as the engine."""
    results: list[Result] = []
    for count in (1, 2, 4)[: MOST.bit_length()]:
        note = f"floor: PostgreSQL, groups of 64 on as many connections ({count})"
        names = DBOS_POSTGRES, PROCRASTINATE, RESTATE
        results += await against(
            f"128 jobs of 50 on {count} worker{'s' if count > 1 else ''}",
            "per second",
            partial(worked_off, count),
            partial(inserted, count),
            note,
            peers=[peer for name in names for peer in lab.rival(name, f"workers-{count}", None)],
        )
    results += await against(
        "128 jobs of 50 on 2 workers, placed by DBOS",
        "per second",
        partial(worked_off, min(2, MOST), "dbos"),
        partial(worked_off, min(2, MOST)),
        "floor: the same, claimed from the journal",
    )
    return results


async def _work(url: str, engine: str, concurrency: int) -> None:
    async with opened(url, engine, concurrency) as remit:
        engine_here = remit.engine
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        engine_here.start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
