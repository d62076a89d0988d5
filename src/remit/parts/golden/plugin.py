"""The plug-in for pytest: the fixture `remit_golden` checks golden jobs against the code of the tests.

    def test_golden_jobs(remit_golden):
        remit_golden("golden", tools=[look, pay], recipes=[buy])

Without tools and recipes, those of the folder's remit.toml count, which has to be trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from remit.parts.golden.noun import CheckReport, Class


@pytest.fixture
def remit_golden(request: pytest.FixtureRequest) -> Callable[..., CheckReport]:
    """Check golden jobs: the files and folders that are named, below the root of the tests.

    Beside `fail`, the class from which on the test fails ("failed"; "breaking" is stricter), it takes the arguments of
    Remit. Returns the report.
    """
    root = request.config.rootpath

    def check(*paths: str | Path, fail: Class = "failed", **options: Any) -> CheckReport:
        from remit.parts.golden.noun import CLASSES, read_all
        from remit.parts.golden.report import details

        goldens = read_all(root / path for path in paths or ("golden",))
        report = asyncio.run(_checked(goldens, fail, options))
        failing = [job for job in report.jobs if CLASSES.index(job.result) >= CLASSES.index(fail)]
        if failing:
            lines = [f"{job.name} ({job.recipe}) is {job.result}: {line}" for job in failing for line in details(job)]
            pytest.fail("\n".join(lines), pytrace=False)
        return report

    return check


async def _checked(goldens: list[Any], fail: Class, options: dict[str, Any]) -> CheckReport:
    from remit.app import Remit

    async with Remit(":memory:", work=False, **options) as remit:
        report: CheckReport = await remit.service.golden.check(goldens, fail=fail)
        return report
