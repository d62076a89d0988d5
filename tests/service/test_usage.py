from __future__ import annotations

from pathlib import Path

import pytest

from remit import Remit, Run, recipe
from remit.service.usage import By
from remit.settings import load


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
