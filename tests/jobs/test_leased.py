"""Who is blamed for the death of a worker: the job that ends the next one too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from remit.clock import SECOND
from remit.gateway.confirmations import Confirmations
from remit.jobs.execution import LeasedJob
from remit.jobs.state import JobHistory
from remit.journal.event import HeadPatch, LeaseClaim
from remit.journal.journal import Journal
from remit.journal.kinds import (
    JobCreated,
    Payload,
    RecoveryCompleted,
    RecoveryStarted,
    TimeRecorded,
    ToolInvocationStarted,
)
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import opened
from tests.journal.storages import SqliteStorage

DEAD, ALIVE = "dead", "alive"


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    """An empty journal."""
    clock = ManualClock()
    found = Journal(SqliteStore(":memory:", clock), clock)
    yield found
    await found.close()


async def leased_by(journal: Journal, stream: str, owner: str) -> tuple[LeasedJob, JobHistory]:
    """A job as an owner takes it, over whoever holds it."""
    now, head = journal.clock.now(), await journal.head(stream)
    assert head is not None
    claim = LeaseClaim(kind="job", owner=owner, now=now, lease_until=now + SECOND, state="running")
    lease = await journal.acquire(stream, claim, over=head.lease_owner)
    assert lease is not None
    return LeasedJob(journal, Confirmations(journal), lease), JobHistory(await journal.read(stream))


async def taken(journal: Journal, name: str, *owners: str) -> tuple[LeasedJob, JobHistory]:
    """A job that these owners held and did not give up, one after the other, as the next one takes it."""
    stream = f"job/{name}"
    patch = HeadPatch(state="pending", due_at=journal.clock.now())
    await journal.create(stream, "job", JobCreated(kind="recipe", name="r"), patch=patch)
    for owner in owners:
        leased, history = await leased_by(journal, stream, owner)
        await leased.take_over(history, {}, lambda owner: owner == ALIVE)
    return await leased_by(journal, stream, "next")


@pytest.mark.parametrize(
    ("owners", "verdict"),
    [
        ((), "go on"),
        ((DEAD,), "go on"),
        ((DEAD, DEAD), "go on"),
        ((DEAD, DEAD, DEAD), "deadly"),
        ((DEAD, ALIVE, DEAD), "go on"),
    ],
)
async def test_a_job_that_three_processes_died_of_is_left_alone(
    journal: Journal, owners: tuple[str, ...], verdict: str
) -> None:
    leased, history = await taken(journal, "a", *owners)
    assert await leased.take_over(history, {}, lambda owner: owner == ALIVE) == verdict


async def test_a_job_that_gets_something_done_is_blamed_no_more(journal: Journal) -> None:
    leased, history = await taken(journal, "a", DEAD, DEAD)
    await leased.take_over(history, {}, lambda _owner: False)
    assert history.deaths.count == 2
    history.take(TimeRecorded(step="1", value=1))
    assert history.deaths.count == 0


X, Y, NOTHING = ("x",), ("y",), ()
SEVERAL = ("x", "y")


@pytest.mark.parametrize(
    ("lives", "deaths"),
    [
        ((X, X, X), 3),
        ((SEVERAL, X, SEVERAL), 3),
        ((NOTHING, NOTHING, NOTHING), 3),
        ((X, Y, X), 1),
        ((X, NOTHING, NOTHING), 2),
        ((X, NOTHING, X), 1),
        ((X, None, X, None, X), 2),
        ((X, None, None, None, None), 1),
        ((None, None, None, None, X), 1),
    ],
    ids=str,
)
def test_processes_die_of_a_job_where_each_dies_at_the_same_step(
    lives: tuple[tuple[str, ...] | None, ...], deaths: int
) -> None:
    """Each life says what steps it began; None: it died before it went on with the job."""
    history, previous = JobHistory(), ""
    for number, steps in enumerate(lives):
        owner = f"dead-{number}"
        if steps is not None:
            if previous:
                history.take(RecoveryStarted(owner=owner, previous_owner=previous))
            for step in steps:
                history.take(started(step))
        previous = owner
    history.take(RecoveryStarted(owner="next", previous_owner=previous))
    assert history.deaths.count == deaths


def started(step: str) -> ToolInvocationStarted:
    return ToolInvocationStarted(
        invocation_id="t", step=step, tool_name="a.b", provider_id="local", capability_level=0, side_effect="read"
    )


@pytest.mark.slow
@pytest.mark.parametrize("deadly", ["read", "code", ""])
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_only_a_job_that_ends_its_processes_is_blamed_in_a_burst_of_kills(
    request: pytest.FixtureRequest, tmp_path: Path, store: str, deadly: str
) -> None:
    """Thirty processes hold ten jobs each, and are killed when they have just taken some over, and read for others."""
    storage = SqliteStorage(tmp_path / "j.db") if store == "sqlite" else request.getfixturevalue("storage")
    chance, clock, blamed = Random(2), ManualClock(), dict[int, int]()
    async with opened(storage, clock) as journal:
        for number in range(10):
            patch = HeadPatch(state="pending", due_at=clock.now())
            await journal.create(f"job/{number}", "job", JobCreated(kind="recipe", name="r"), patch=patch)
        for life in range(30):
            for number in [number for number in range(10) if number not in blamed]:
                leased, history = await leased_by(journal, f"job/{number}", f"dead-{life}")
                if chance.random() < 0.1:
                    continue  # killed before it went on with this one
                if await leased.take_over(history, {}, lambda _owner: False) == "deadly":
                    blamed[number] = life
                else:
                    await journal.append(leased.writer, *recorded(chance, "" if number else deadly, life), synced=True)
    assert set(blamed) == ({0} if deadly else set())


def recorded(chance: Random, deadly: str, life: int) -> tuple[Payload, ...]:
    """Return what a process recorded of a job before it died, in most lives in the middle of a later step."""
    nothing, reads = (RecoveryCompleted(),), (started("first"),)
    if deadly:
        return reads if deadly == "read" else nothing
    goes_on = (TimeRecorded(step=f"{life}", value=1), started(f"{life}"))
    return chance.choices((nothing, reads, goes_on), (1, 1, 18))[0]


async def test_jobs_that_may_have_ended_a_process_go_on_one_at_a_time(journal: Journal) -> None:
    suspects: dict[str, JobHistory] = {}
    verdicts = []
    for name in ("a", "b"):
        leased, history = await taken(journal, name, DEAD, DEAD)
        verdicts.append(await leased.take_over(history, suspects, lambda _owner: False))
    fresh, history = await taken(journal, "c")
    verdicts.append(await fresh.take_over(history, suspects, lambda _owner: False))
    assert verdicts == ["go on", "later", "go on"]
    head = await journal.head("job/b")
    assert head is not None
    assert (head.state, head.lease_owner, head.due_at) == ("pending", None, journal.clock.now() + SECOND)
