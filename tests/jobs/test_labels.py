"""`run.label` and `run.title`: what a run says of its job, for those who look for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from remit import CallContext, Run, recipe, tool
from remit.codes import Code
from remit.journal.labels import conditions
from remit.record.search import JobSearch
from remit.service.handle import JobEndedError
from remit.service.options import Options
from tests.opened import OpenRemit, until_waiting

DUE = datetime(2026, 12, 1, tzinfo=UTC)


@tool("order.look", level="L0")
async def look(ctx: CallContext, order: str) -> dict[str, str]:
    assert ctx.job is not None
    return {"order": order, **ctx.job.labels}


@recipe("orders", version="1")
async def orders(run: Run, amount: int) -> Any:
    await run.label(team="pay", amount=amount, urgent=True, due=DUE)
    await run.title(f"Order of {amount}")
    await run.wait_signal("go")
    await run.label({"order.id": "o-1"}, team="ops", due=None)
    return await run.call(look, order="o-1")


@recipe("orders", version="1")
async def other_orders(run: Run, amount: int) -> None:
    await run.label(team="sales", amount=amount)


async def found(remit: Any, *texts: str) -> list[str]:
    labels, bounds = conditions(texts)
    page = await remit.service.jobs.search(JobSearch(labels=labels, bounds=bounds))
    rows = await remit.service.jobs.rows(labels=labels, bounds=bounds)
    assert [row.job for row in rows] == [row.job for row in page.rows]
    return [row.title for row in rows]


async def test_a_job_is_found_by_what_its_run_said_of_it(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[orders]) as remit:
        jobs = [await remit.start(orders(amount), Options(labels={"shop": "a"})) for amount in (5, 250)]
        for job in jobs:
            await until_waiting(remit, job.id)
        assert await found(remit, "team=pay") == ["Order of 250", "Order of 5"]
        assert await found(remit, "amount>=100", "shop=a", "urgent=true") == ["Order of 250"]
        assert await found(remit, "due<=2026-12-01T01:00:00+01:00") == ["Order of 250", "Order of 5"]
        await jobs[0].signal("go")
        assert await jobs[0] == {
            "order": "o-1",
            "shop": "a",
            "amount": "5",
            "urgent": "true",
            "team": "ops",
            "order.id": "o-1",
        }
        assert await found(remit, "team=pay") == ["Order of 250"]
        assert await found(remit, "team=ops", "order.id=o-1") == ["Order of 5"]
        assert await found(remit, "due<2030-01-01T00:00:00Z") == ["Order of 250"]
        assert (await remit.service.jobs.replay(jobs[0].id)).verdict == "same"
        assert (await remit.service.streams.verify(jobs[0].id)).ok


async def test_another_label_than_recorded_is_another_program(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[orders]) as remit:
        job = await remit.start(orders(5))
        await until_waiting(remit, job.id)
    async with remit_in(tools=[look], recipes=[other_orders]) as remit:
        report = await remit.service.jobs.replay(job.id, anyway=True)
    assert report.verdict != "same"
    assert report.divergence is not None
    assert "team=sales" in report.divergence.now


@recipe("hasty", version="1")
async def hasty(run: Run) -> str:
    await run.label(step="one")
    await run.call(look, order="x")
    await run.label(step="two")
    raise ValueError("no")


async def test_a_retry_begins_with_the_labels_of_what_it_keeps(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[hasty]) as remit:
        job = await remit.start(hasty())
        with pytest.raises(JobEndedError):
            await job
        retried = await remit.service.jobs.retry(job.id, step="2")
        row = await remit.service.jobs.row(retried.job)
        assert row.labels == {"step": "one"}
        assert (await remit.service.streams.verify(retried.job)).ok


@recipe("wrong", version="1")
async def wrong(run: Run, key: str) -> None:
    await run.label({key: "x"} if key else {})


@pytest.mark.parametrize("key", ["", "remit.name"])
async def test_what_cannot_be_a_label_fails_the_job(remit_in: OpenRemit, key: str) -> None:
    async with remit_in(recipes=[wrong]) as remit:
        job = await remit.start(wrong(key))
        with pytest.raises(JobEndedError):
            await job
        row = await remit.service.jobs.row(job.id)
        assert row.code in {Code.INVALID_INPUT.name, Code.USAGE.name}
