"""kill -9 at random moments, with an external witness: no announced effect that must not repeat ever happens twice."""

from __future__ import annotations

import collections
import multiprocessing
import os
import random
from pathlib import Path

import pytest

from remit import Remit
from remit.jobs.state import ENDED
from tests.crash.worker import CHARGES, STEPS, fails_late, opened, rounds, run_until_killed, settle

ROUNDS = int(os.environ.get("REMIT_TEST_KILLS", "40"))


async def kill_until_it_ends(remit: Remit, job: str, folder: Path) -> int:
    """Kill workers at random moments until a job has ended, and decide what they leave; how many were killed."""
    witness = folder / "witness"
    witness.touch()
    chance = random.Random(20)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.crash.worker", "remit.app"])
    kills = 0
    while (await remit.service.jobs.row(job)).state not in ENDED:
        worker = processes.Process(target=run_until_killed, args=(str(folder), job))
        worker.start()
        while not kills and worker.is_alive() and not witness.stat().st_size:
            worker.join(0.001)  # the first one has done something, and has more to do
        worker.join((chance.uniform(0.005, 0.12) if kills else 0) if kills < ROUNDS else None)
        if worker.is_alive():
            worker.kill()
            kills += 1
        worker.join()
        await settle(remit.service, job, remit, witness.read_text().splitlines())
    return kills


@pytest.mark.slow
async def test_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    async with opened(tmp_path, work=False) as remit:
        job = (await remit.start(rounds())).id
        kills = await kill_until_it_ends(remit, job, tmp_path)
        assert await remit.service.jobs.result(job) == [n for i in range(1, STEPS + 1) for n in (i * 10, i)]
        assert (await remit.service.streams.verify(job)).problems == ()
        assert (await remit.service.jobs.replay(job)).verdict == "same"
    effects = collections.Counter(line for line in witness.read_text().splitlines())
    charges = {line: count for line, count in effects.items() if line.startswith("charge ")}
    assert charges == dict.fromkeys(charges, 1)
    assert len(charges) == STEPS
    notes = {line for line in effects if line.startswith("note ")}
    assert len(notes) == STEPS, "an idempotent effect kept its key through every repetition"
    assert kills > 0


@pytest.mark.slow
async def test_a_job_that_fails_is_undone_exactly_once_whenever_it_is_killed(tmp_path: Path) -> None:
    async with opened(tmp_path, work=False) as remit:
        job = (await remit.start(fails_late())).id
        kills = await kill_until_it_ends(remit, job, tmp_path)
        view = await remit.service.jobs.view(job)
        assert view.row.state == "failed"
        assert view.error is not None
        assert "left as they are" not in view.error.message
        assert (await remit.service.streams.verify(job)).problems == ()
        assert (await remit.service.jobs.replay(job)).verdict == "same"
    effects = collections.Counter((tmp_path / "witness").read_text().splitlines())
    refunds = {line: count for line, count in effects.items() if line.startswith("refund ")}
    assert refunds == dict.fromkeys((f"refund {number * 10}" for number in range(CHARGES)), 1)
    assert sum(line.startswith("charge ") for line in effects.elements()) == CHARGES
    assert kills > 0
