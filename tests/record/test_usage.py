from __future__ import annotations

from pathlib import Path

import pytest

from remit import JobEndedError, Remit, Run, recipe
from remit.clock import DAY
from remit.gateway import sums
from remit.gateway.model_request import BudgetClaim
from remit.journal.event import JournalFold
from remit.record.usage import By, priced
from remit.settings import load
from tests.jumping import clock_at_noon

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


@recipe("free")
async def free(run: Run) -> None:
    await run.model("one", model="scripted:t.yaml")


async def test_sums_are_by_model_job_principal_and_day(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:", "app.principal": "ada"}
    flags["models.prices"] = [{"model": "scripted:*", "input": 1, "output": 1_000_000}]  # type: ignore[assignment]
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    async with Remit(settings=settings, recipes=[twice], clock=clock_at_noon()) as remit:
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
        assert await usage.rows(days, since=remit.runtime.journal.clock.now() + DAY) == []


async def test_a_request_without_a_price_is_none_of_0_dollars(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    (tmp_path / "t.yaml").write_text("[{say: four words are said}]")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:"}
    flags["models.prices"] = [{"model": "scripted:t*", "input": 0, "output": 0}]  # type: ignore[assignment]
    async with Remit(
        settings=load(cwd=tmp_path, file=None, env={}, flags=flags), recipes=[twice, free], clock=clock_at_noon()
    ) as remit:
        await (await remit.start(twice()))
        job = await remit.start(free())
        await job
        rows = {row.name: row for row in await remit.service.usage.rows("model")}
        (day,) = await remit.service.usage.rows("day")
        (of,) = await remit.service.usage.of(job.id)
    assert {name: (row.cost, row.unpriced) for name, row in rows.items()} == {
        "scripted:s.yaml": (None, 2),
        "scripted:t.yaml": (0.0, 0),
    }
    assert (day.cost, day.unpriced, of.cost) == (None, 2, 0.0)
    assert [priced(None, 2), priced(0.036, 1_029), priced(0.036, 1), priced(0.0, 0)] == [
        "\u2013",
        "0.0360 + 1,029 requests without a price",
        "0.0360 + 1 request without a price",
        "0.0000",
    ]


async def test_verify_compares_the_sums_with_the_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_NEW_EVENTS", 1)
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:"}
    async with Remit(
        settings=load(cwd=tmp_path, file=None, env={}, flags=flags), recipes=[twice], clock=clock_at_noon()
    ) as remit:
        await (await remit.start(twice()))
        journal = remit.runtime.journal
        await remit.service.usage.rows("day")
        assert (await remit.service.streams.verify()).ok
        (cursor, day) = await journal.folds.read(sums.NAME, [str(journal.clock.now() // DAY)])
        await journal.folds.keep([cursor, JournalFold(day.name, day.position, b"[]")], cursor.position)
        assert (await remit.service.streams.verify()).codes == ("JOURNAL_CORRUPT",)


async def test_what_a_retry_takes_over_is_counted_once_also_for_the_day(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("[{say: four words are said}]")
    flags = {"models.default": "scripted:s.yaml", "journal.url": ":memory:", "models.day_tokens": 100_000}
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    BROKEN[:] = ["yes"]
    async with Remit(settings=settings, recipes=[fails], clock=clock_at_noon()) as remit:
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
        refused = await allowance.claim(BudgetClaim(principal="x", tokens=100_000, cost=0.0))
        assert refused == ""
        principal = (await remit.service.jobs.view(job.id)).principal
        refused = await allowance.claim(BudgetClaim(principal=principal, tokens=100_000, cost=0.0))
        assert refused.startswith(f"{principal} used {after.tokens} tokens today")
