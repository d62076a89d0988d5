from __future__ import annotations

from pathlib import Path

import pytest

from remit import JobEndedError, Remit, Run, recipe
from remit.gateway.allowance import Claim
from remit.service.usage import By
from remit.settings import load

BROKEN = ["yes"]


@recipe("fails")
async def fails(run: Run) -> str:
    """Ask, fail as long as something is broken, and ask again."""
    await run.model("one")
    if BROKEN:
        raise LookupError("broken")
    return (await run.model("two")).text


@recipe("twice")
async def twice(run: Run) -> None:
    await run.gather(run.model("one"), run.model("two"))


async def test_sums_are_by_model_job_principal_and_day(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:", "app.principal": "ada"}
    flags["models.prices"] = [{"model": "scripted:*", "input": 1, "output": 1_000_000}]  # type: ignore[assignment]
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    async with Remit(settings=settings, recipes=[twice]) as remit:
        jobs = [await remit.start(twice()) for _ in range(2)]
        for job in jobs:
            await job
        usage = remit.service.usage
        (by_model,) = await usage.rows("model")
        assert (by_model.name, by_model.calls) == ("scripted:s.yaml", 4)
        assert by_model.cost == pytest.approx(4 * 5, rel=0.01)
        assert by_model.tokens > 4 * 5
        assert [(row.name, row.calls) for row in await usage.rows("principal")] == [("ada", 4)]
        assert {row.name: row.calls for row in await usage.rows("job")} == {job.id: 2 for job in jobs}
        days: By = "day"
        assert [row.calls for row in await usage.rows(days)] == [4]
        assert await usage.rows(days, since=remit.runtime.journal.clock.now() + 1) == []


async def test_what_a_retry_takes_over_is_counted_once_also_for_the_day(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:", "models.day_tokens": 100_000}
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    BROKEN[:] = ["yes"]
    async with Remit(settings=settings, recipes=[fails]) as remit:
        job = await remit.start(fails())
        with pytest.raises(JobEndedError):
            await job
        (before,) = await remit.service.usage.rows("model")
        BROKEN.clear()
        again = (await remit.service.jobs.retry(job.id)).job
        assert await remit.job(again) == "four words are said"
        (after,) = await remit.service.usage.rows("model")
        assert (before.calls, after.calls) == (1, 2)
        assert {row.name: row.calls for row in await remit.service.usage.rows("job")} == {job.id: 1, again: 1}
        allowance = remit.runtime.services.allowance
        refused = await allowance.claim(Claim(stream="s", principal="x", tokens=100_000, cost=0.0))
        assert refused == ""
        principal = (await remit.service.jobs.view(job.id)).principal
        refused = await allowance.claim(Claim(stream="s", principal=principal, tokens=100_000, cost=0.0))
        assert refused.startswith(f"{principal} used {after.tokens} tokens today")
