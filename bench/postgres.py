"""Many jobs on a journal in PostgreSQL, on a server that is made for each sample."""

from __future__ import annotations

import asyncpg

from bench.floors import ROW
from bench.lab import DBOS_POSTGRES, Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.peers.postgres import Database, database
from bench.steps import EACH, JOBS, at_once
from bench.subject import remit_in


async def concurrent_postgres(lab: Lab) -> list[Result]:
    """64 jobs of 50 read-only steps at once."""

    async def sample() -> Reading:
        with database() as place:
            async with remit_in(lab.folder, flags={"journal.url": place.url}) as remit:
                return await at_once(remit, Watch(place.server.cpu))

    async def floor() -> Reading:
        with database() as place:
            return await grouped(place, JOBS * EACH, 64)

    return await against(
        "64 jobs of 50 on PostgreSQL",
        "per second",
        sample,
        floor,
        "floor: PostgreSQL, groups of 64",
        peers=lab.rival(DBOS_POSTGRES, "concurrent", Mark(8, "peer")),
    )


async def sharded_postgres(lab: Lab) -> list[Result]:
    """The same jobs on one server through the router of a journal of two shards, beside those on one journal there."""

    async def sample(shards: int) -> Reading:
        with database() as place:
            between = "&" if "?" in place.url else "?"
            urls = " ".join(f"{place.url}{between}schema=shard_{number}" for number in range(shards))
            async with remit_in(lab.folder, flags={"journal.url": urls}) as remit:
                return await at_once(remit, Watch(place.server.cpu))

    return await against(
        "64 jobs of 50 on two shards",
        "per second",
        lambda: sample(2),
        lambda: sample(1),
        "floor: the same server without shards",
    )


async def grouped(place: Database, count: int, group: int) -> Reading:
    """Rows per second, so many in a statement of its own, flushed."""
    db = await asyncpg.connect(place.url)
    await db.execute("CREATE TABLE rows (stream bigint, seq bigint, data bytea, PRIMARY KEY (stream, seq))")
    insert = await db.prepare("INSERT INTO rows SELECT 1, * FROM unnest($1::bigint[], $2::bytea[])")
    watch = Watch(place.server.cpu)
    for start in range(0, count, group):
        await insert.fetch(list(range(start, start + group)), [ROW] * group)
    rate = watch.rate(count)
    await db.close()
    return rate
