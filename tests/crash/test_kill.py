"""kill -9 at random moments, with an external witness: no announced effect that must not repeat ever happens twice."""

from __future__ import annotations

import collections
import multiprocessing
import random
from pathlib import Path

import pytest

from remit.jobs.state import ENDED
from tests.crash.worker import STEPS, opened, rounds, run_until_killed, settle

ROUNDS = 120


@pytest.mark.slow
async def test_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    witness.touch()
    chance = random.Random(20)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.crash.worker", "remit.app"])
    async with opened(tmp_path, work=False) as remit:
        job = (await remit.start(rounds())).id
        kills = 0
        while (await remit.service.jobs.row(job)).state not in ENDED:
            worker = processes.Process(target=run_until_killed, args=(str(tmp_path), job))
            worker.start()
            worker.join(chance.uniform(0.005, 0.12) if kills < ROUNDS else None)
            if worker.is_alive():
                worker.kill()
                kills += 1
            worker.join()
            await settle(remit.service, job, remit, witness.read_text().splitlines())
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
