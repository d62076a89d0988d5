"""Jobs that an older Remit left open are resumed by the one of today, and brought to their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit import Remit
from remit.clock import DAY
from remit.jobs.state import ENDED
from remit.record.views import JobRow, OpenWait
from remit.settings import load
from tests.jumping import clock_at
from tests.opened import until
from tests.record.old import world
from tests.record.old.golden import NAMES, last_event, unpack

ENDS = {
    "compensations": ["completed"],
    "doubts": ["completed", "completed"],
    "erased": ["PAYLOAD_ERASED"],
    "signals": ["completed"],
    "stuck": ["completed"],
    "tickets_failed_and_blocked": ["completed"],
    "timers": ["cancelled"],
    "waiting_for_approval": ["completed"],
}
"""By journal, the ends of the jobs that it holds open: their state, or the code or wait that keeps them from one."""
RECIPES = (world.acts, world.greet, world.newer)


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resumed")
    unpack(folder)
    return folder


def opened(journal: Path) -> Remit:
    """The journal with the tools and recipes of its time, at work a day after its last event: its leases are over, its
    timers still run.
    """
    flags = {**world.FLAGS, "journal.url": str(journal), "jobs.mismatch": "warn", "jobs.drain_seconds": 0}
    settings = load(cwd=journal.parent, file=None, env={}, flags=flags)
    later = clock_at(last_event(journal) + DAY)
    return Remit(settings=settings, tools=world.TOOLS, recipes=RECIPES, clock=later)


async def answered(remit: Remit, job: str, wait: OpenWait) -> None:
    """Give a job what it waits for, once."""
    service = remit.service
    if wait.type == "signal":
        await service.jobs.signal(job, wait.key, "go")
    elif wait.key.startswith("uncertain:"):
        await service.steps.decide(job, wait.step, "done", None, by="bob", reason="I looked")
    elif wait.type == "human":
        await service.confirmations.decide(wait.key, "approve", by="bob")


async def resumed(remit: Remit, job: str) -> JobRow:
    """A job after it was resumed, and given everything that it waited for; one that waits for a timer is cancelled."""
    service = remit.service
    kept = (await service.jobs.row(job)).code
    await service.jobs.resume(job)
    if kept:
        await until(remit, job, lambda row: not row.code)  # what kept it then is no reason now
    if any(wait.type == "timer" for wait in (await service.jobs.view(job)).waits):
        await service.jobs.cancel(job, by="bob", reason="it is late")
    seen: set[tuple[str, str]] = set()
    while True:
        await remit.settled(job)
        row: JobRow = await service.jobs.row(job)
        waits = (await service.jobs.view(job)).waits
        wait = next((one for one in waits if (one.step, one.key) not in seen), None)
        if wait is None or row.code or row.state in ENDED:
            return row
        seen.add((wait.step, wait.key))
        await answered(remit, job, wait)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_open_jobs_of_an_old_journal_are_resumed(journals: Path, name: str) -> None:
    async with opened(journals / f"{name}.db") as remit:
        jobs = [row.job for row in await remit.service.jobs.rows(limit=100) if row.state not in ENDED]
        ends = []
        for job in jobs:
            before = (await remit.service.jobs.history(job)).places
            row = await resumed(remit, job)
            history = await remit.service.jobs.history(job)
            assert list(history.places)[: len(before)] == list(before)
            ends.append(row.code or (row.state if row.state in ENDED else row.waiting_for))
            if not row.code:
                assert (await remit.service.jobs.replay(job, anyway=True)).verdict in {"same", "incomplete"}
        assert sorted(ends) == ENDS.get(name, [])
        assert not (await remit.service.streams.verify()).problems
