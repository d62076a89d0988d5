"""A job whose record is damaged harms no other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from remit import Code, Remit, Run, recipe
from remit.errors import ChainBrokenError
from tests.opened import OpenRemit


@recipe("measures")
async def measures(run: Run, text: str) -> int:
    """Long texts are kept beside the events."""
    return len(text)


async def lost(remit: Remit, job: str) -> None:
    with pytest.raises(ChainBrokenError) as told:
        await remit.job(job)
    assert told.value.code is Code.BLOB_MISSING


async def test_a_job_that_lost_its_input_stops_no_other(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(recipes=[measures], work=False) as remit:
        damaged = (await remit.start(measures("x" * 20_000))).id
        whole = (await remit.start(measures("y"))).id
    with apsw.Connection(str(tmp_path / "journal.db")) as db:
        db.execute("DELETE FROM blobs")
    async with remit_in(recipes=[measures], flags={"jobs.concurrency": 1}) as remit:
        await asyncio.gather(lost(remit, damaged), remit.job(whole))
        assert await remit.run(measures("yz")) == 2
        assert remit.runtime.engine.failure is None
