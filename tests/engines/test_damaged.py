"""A job whose record is damaged harms no other."""

from __future__ import annotations

from pathlib import Path

import apsw

from remit import Run, recipe
from tests.opened import OpenRemit, until


@recipe("measures")
async def measures(run: Run, text: str) -> int:
    """Long texts are kept beside the events."""
    return len(text)


async def test_a_job_that_lost_its_input_stops_no_other(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(recipes=[measures], work=False) as remit:
        damaged = (await remit.start(measures("x" * 20_000))).id
        whole = (await remit.start(measures("y"))).id
    with apsw.Connection(str(tmp_path / "journal.db")) as db:
        db.execute("DELETE FROM blobs")
    async with remit_in(recipes=[measures], flags={"jobs.concurrency": 1}) as remit:
        assert await remit.job(whole) == 1
        # It is kept for whoever restores what is gone, and can be stopped for good.
        await until(remit, damaged, lambda row: (row.state, row.code) == ("waiting", "BLOB_MISSING"))
        await remit.service.jobs.cancel(damaged)
        assert (await remit.ended(damaged)).state == "cancelled"
        assert remit.runtime.engine.failure is None
