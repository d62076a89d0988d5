"""Who is blamed for the death of a worker: the job that ends the next one too."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from remit.clock import SECOND
from remit.gateway.confirmations import Confirmations
from remit.jobs.leased import LeasedJob
from remit.jobs.state import History
from remit.journal.event import Claim, HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import JobCreated, TimeRecorded
from remit.journal.sqlite.store import SqliteStore
from remit.testing.clock import ManualClock

DEAD, ALIVE = "dead", "alive"


@pytest.fixture
async def journal() -> AsyncIterator[Journal]:
    """An empty journal."""
    clock = ManualClock()
    found = Journal(SqliteStore(":memory:", clock), clock)
    yield found
    await found.close()


async def leased_by(journal: Journal, stream: str, owner: str) -> tuple[LeasedJob, History]:
    """A job as an owner takes it, over whoever holds it."""
    now, head = journal.clock.now(), await journal.head(stream)
    assert head is not None
    claim = Claim(kind="job", owner=owner, now=now, lease_until=now + SECOND, state="running")
    lease = await journal.acquire(stream, claim, over=head.lease_owner)
    assert lease is not None
    return LeasedJob(journal, Confirmations(journal), lease), History(await journal.read(stream))


async def taken(journal: Journal, name: str, *owners: str) -> tuple[LeasedJob, History]:
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
    assert history.deaths == 2
    history.take(TimeRecorded(step="1", value=1))
    assert history.deaths == 0


async def test_jobs_that_may_have_ended_a_process_go_on_one_at_a_time(journal: Journal) -> None:
    suspects: dict[str, History] = {}
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
