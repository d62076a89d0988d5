"""A job whose code is not here waits for other code, and hears whatever comes while it is put aside."""

from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe
from remit.errors import PlanError
from remit.jobs.inbox import JobInbox
from remit.jobs.plans import check
from remit.jobs.plans.check import read_plan
from remit.journal.journal import Journal
from remit.journal.kinds import JobWaiting, decode
from remit.record.views import JobRow
from tests.opened import OpenRemit, until

FAIL = {"jobs.mismatch": "fail"}


def version(number: int) -> Any:
    """One version of a recipe that reads the clock, then waits."""

    @recipe("pinned", version=str(number))
    async def pinned(run: Run) -> int:
        await run.now()
        await run.wait_signal("go")
        return number

    return pinned


async def stuck_in(remit_in: OpenRemit) -> str:
    """A job that waits for a signal, made by version 1; sent, so that the next worker looks at it."""
    first = version(1)
    async with remit_in(recipes=[first]) as remit:
        job = await remit.start(first())
        await until(remit, job.id, lambda row: row.state == "waiting")
    async with remit_in(recipes=[first], work=False) as remit:
        await remit.job(job.id).signal("go")
    return job.id


def once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, then: Any, *, before: bool) -> None:
    """Let something happen once, right before or right after a method of the worker's runs."""
    method, pending = getattr(owner, name), [then]

    async def with_it(self: Any, *given: Any, **more: Any) -> Any:
        happens = pending.pop() if pending else None
        if happens and before:
            await happens()
        result = await method(self, *given, **more)
        if happens and not before:
            await happens()
        return result

    monkeypatch.setattr(owner, name, with_it)


def is_stuck(row: JobRow) -> bool:
    return row.code == "EXECUTION_VERSION_MISMATCH" and row.worker == ""


@pytest.mark.parametrize("moment", ["after its inbox was read", "before it is put aside"])
async def test_a_cancellation_is_heard_while_the_job_is_put_aside(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    job = await stuck_in(remit_in)
    async with remit_in(recipes=[version(2)], flags=FAIL, work=False) as remit:

        async def cancel() -> None:
            await remit.service.jobs.cancel(job)

        if moment == "after its inbox was read":
            once(monkeypatch, JobInbox, "refresh", cancel, before=False)
        else:
            once(monkeypatch, Journal, "park", cancel, before=True)
        remit.runtime.engine.start()
        assert (await remit.ended(job)).state == "cancelled"


async def test_a_resume_in_that_moment_lets_the_next_worker_look(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await stuck_in(remit_in)
    async with remit_in(recipes=[version(2)], flags=FAIL, work=False) as remit:

        async def resume() -> None:
            await remit.service.jobs.resume(job)

        once(monkeypatch, Journal, "park", resume, before=True)
        remit.runtime.engine.start()
        stuck = 0
        mark = 0
        while stuck < 2:
            mark = await remit.runtime.journal.changed(mark)
            stuck = len([e for e in await remit.service.streams.events(f"job/{job}") if b"stuck:" in e.data])
        await until(remit, job, is_stuck)
        head = await remit.runtime.journal.head(f"job/{job}")
        assert head is not None
        assert head.route.startswith("pinned@1+"), "with no news the second execution left it to version 1"


async def test_it_goes_on_where_its_code_is(remit_in: OpenRemit) -> None:
    job = await stuck_in(remit_in)
    async with remit_in(recipes=[version(2)], flags=FAIL) as remit:
        await until(remit, job, is_stuck)
    async with remit_in(recipes=[version(1)], flags=FAIL) as remit:
        await remit.service.jobs.resume(job)
        assert await remit.job(job) == 1


@pytest.mark.parametrize("policy", ["warn", "fail"])
async def test_a_recipe_within_another_is_held_to_its_version_too(remit_in: OpenRemit, policy: str) -> None:
    def child(number: int) -> Any:
        @recipe("child", version=str(number))
        async def child(run: Run) -> int:
            await run.wait_signal("go")
            return number

        return child

    within: list[Any] = [child(1)]

    @recipe("parent")
    async def parent(run: Run) -> int:
        return int(await run.child(within[-1]()))

    async with remit_in(recipes=[parent, within[-1]]) as remit:
        job = (await remit.start(parent())).id
        await until(remit, job, lambda row: row.state == "waiting")
    within.append(child(2))
    async with remit_in(recipes=[parent, within[-1]], flags={"jobs.mismatch": policy}) as remit:
        await remit.job(job).signal("go")
        if policy == "fail":
            await until(remit, job, is_stuck)
        else:
            assert await remit.job(job) == 2
        (drift,) = (await remit.service.streams.narrative(job)).drifts
        assert (drift.subject, drift.recorded.partition("+")[0], drift.current.partition("+")[0]) == (
            "recipe",
            "child 1",
            "child 2",
        )


def takes_a_number() -> Any:
    @recipe("counts", version="1")
    async def counts(run: Run, number: int) -> int:
        await run.wait_signal("go")
        return number

    return counts


def takes_a_list() -> Any:
    @recipe("counts", version="2")
    async def counts(run: Run, number: list[str]) -> int:
        return len(number)

    return counts


def takes_more() -> Any:
    @recipe("counts", version="2")
    async def counts(run: Run, number: int, more: str) -> int:
        return number

    return counts


def takes_less() -> Any:
    @recipe("counts", version="2")
    async def counts(run: Run) -> int:
        return 0

    return counts


def takes_what_json_has_not() -> Any:
    @recipe("counts", version="2")
    async def counts(run: Run, number: Journal) -> int:
        return 0

    return counts


@pytest.mark.parametrize("today", [takes_a_list, takes_more, takes_less, takes_what_json_has_not])
@pytest.mark.parametrize("ends", ["goes on", "is cancelled"])
async def test_a_job_whose_input_does_not_fit_today_waits_for_code_that_takes_it(
    remit_in: OpenRemit, today: Any, ends: str
) -> None:
    first, second = takes_a_number(), today()
    async with remit_in(recipes=[first]) as remit:
        job = (await remit.start(first(3))).id
        await until(remit, job, lambda row: row.state == "waiting")
    async with remit_in(recipes=[second]) as remit:
        await remit.job(job).signal("go")
        await until(remit, job, is_stuck)
        told = [decode(event.kind, event.data) for event in await remit.service.streams.events(f"job/{job}")]
        reasons = [one.reason for one in told if isinstance(one, JobWaiting) and one.wait_type == "human"]
        assert "the recorded input does not fit today's recipe: counts: " in "".join(reasons)
        if ends == "is cancelled":
            await remit.service.jobs.cancel(job)
            assert (await remit.ended(job)).state == "cancelled"
    if ends == "goes on":
        async with remit_in(recipes=[first]) as remit:
            await remit.service.jobs.resume(job)
            assert await remit.job(job) == 3


async def test_a_plan_that_this_version_cannot_read_waits_for_one_that_can(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_document: Any) -> Any:
        raise PlanError("nodes[0].dance: unknown field")

    plan = read_plan({"version": "taskgraph-v1", "name": "p", "nodes": [{"id": "a", "wait": {"signal": "go"}}]})
    async with remit_in(work=False) as remit:
        job = (await remit.start_plan(plan)).id
    monkeypatch.setattr(check, "read_plan", unreadable)
    async with remit_in() as remit:
        await until(remit, job, is_stuck)
        await remit.service.jobs.cancel(job)
        assert (await remit.ended(job)).state == "cancelled"
