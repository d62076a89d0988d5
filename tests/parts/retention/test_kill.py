"""kill -9 at random moments of a pruning: each record is whole or a stub, and the next run ends it."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from pathlib import Path

import pytest

from remit import Options
from remit.evidence import verify
from remit.journal.event import HeadQuery
from remit.journal.values import is_pruned
from tests.opened import OpenRemit
from tests.parts.audit.packages import GIVEN, buy
from tests.parts.retention.doomed import opened, prune_until_killed
from tests.patience import PATIENCE_S

ROUNDS = int(os.environ.get("REMIT_TEST_PRUNES", "6"))
JOBS = 12


async def whole_jobs(folder: Path) -> int:
    """Check every job; how many are not pruned yet."""
    whole = 0
    async with opened(folder) as remit:
        journal = remit.runtime.journal
        report = await remit.service.streams.verify()
        assert report.problems == ()
        for head in await journal.heads(HeadQuery(kind="job")):
            job = head.stream.partition("/")[2]
            if not is_pruned(head):
                whole += 1
                assert (await remit.service.jobs.view(job)).input == {"note": f"{head.title}{'x' * 10_000}"}
                continue
            (stub,) = await journal.left(head.stream)
            verdict = verify.check(str(folder / "kept" / f"job-{job}.zip"))
            assert (verdict.state, verdict.hash) == ("whole", json.loads(stub.data)["package"])
    return whole


@pytest.mark.slow
async def test_kills_at_random_moments_leave_each_record_whole_or_a_stub(remit_in: OpenRemit, tmp_path: Path) -> None:
    rule = {"effect": "allow", "tools": ["desk.pay"]}
    async with remit_in(**GIVEN, policy=[rule]) as remit:
        for number in range(JOBS):
            await remit.run(buy(note=f"{number}{'x' * 10_000}"), Options(title=str(number)))
    chance, processes = random.Random(28), multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.parts.retention.doomed", "remit.app"])
    began, kills = tmp_path / "began", 0
    while await whole_jobs(tmp_path):
        began.unlink(missing_ok=True)
        worker = processes.Process(target=prune_until_killed, args=(str(tmp_path),))
        worker.start()
        while worker.is_alive() and not began.exists():
            worker.join(0.001)
        worker.join(chance.uniform(0.0, 0.3) if kills < ROUNDS else PATIENCE_S)
        if worker.is_alive():
            worker.kill()
            kills += 1
        worker.join()
    packages = list((tmp_path / "kept").glob("job-*.zip"))  # beside what was cut off while it was written
    assert len(packages) == JOBS
