from __future__ import annotations

import pytest

from remit import Options, Run, recipe
from remit.errors import AppendConflictError, UsageError
from remit.ids import new_id
from tests.opened import OpenRemit


@recipe("short")
async def short(run: Run) -> str:
    """Do nothing."""
    return "done"


@pytest.mark.parametrize(
    "job", ["job_x", "x", "run_" + "0" * 26, "job_" + "0" * 27, "job_" + "z" * 26, "job_" + "u" * 26]
)
async def test_what_is_no_identifier_of_a_job_is_refused(remit_in: OpenRemit, job: str) -> None:
    async with remit_in(recipes=[short], work=False) as remit:
        with pytest.raises(UsageError, match="is no job's identifier"):
            _ = await remit.start(short(), Options(job=job))
        assert await remit.queries.jobs() == []


async def test_a_job_whose_identifier_is_given_is_started_once(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[short]) as remit:
        options = Options(job=new_id("job"))
        assert await (await remit.start(short(), options)) == "done"
        with pytest.raises(AppendConflictError):
            _ = await remit.start(short(), options)
