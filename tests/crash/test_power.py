"""Loss of power at any moment of a job: whoever goes on from what the disk kept comes to the same end."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from remit import CallContext, Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.jobs.state import ENDED
from remit.journal.sqlite import connection
from remit.record.views import JobRow
from tests.crash.worker import look, settings
from tests.journal.sqlite.disk import Disk, inserted
from tests.jumping import JumpingClock
from tests.opened import until

pytestmark = pytest.mark.slow
STEPS = 6
EFFECTS: list[str] = []
"""Side effects that happened, in the life that is told at the moment."""
LOSING: list[Callable[[], None]] = []
"""What else happens right after a charge."""


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Must never happen twice."""
    EFFECTS.append(f"charge {ctx.step}")
    for lose_power in LOSING:
        lose_power()
    return number * 10


@tool("bank.note", level="L1", idempotent=True)
async def note(number: int, ctx: CallContext) -> int:
    """May be repeated, with its own key."""
    EFFECTS.append(f"note {ctx.step} {ctx.idempotency_key}")
    return number


@recipe("rounds")
async def rounds(run: Run) -> list[int]:
    """Every kind of effect, in sequence and side by side, and timers."""
    results: list[int] = []
    for number in range(STEPS):
        looked = (await run.call("bank.look", {"number": number})).value
        outcomes = await run.gather(
            run.call("bank.charge", {"number": looked}),
            run.call("bank.note", {"number": looked}),
        )
        await run.sleep(0)
        results += [outcome.value for outcome in outcomes]
    return results


def opened(folder: Path, ahead_s: float = 0) -> Remit:
    """A Remit over the journal in a folder; `ahead_s` later, every lease is over."""
    return Remit(
        settings=settings(folder),
        tools=[charge, note, look],
        recipes=[rounds],
        clock=JumpingClock(SystemClock(), ahead_s),
    )


class Losses:
    """What would be left, and what had happened, if power were lost at this moment."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self.lives: list[tuple[Path, list[str]]] = []
        self._disk = disk
        self._folder = folder
        self._chance = random.Random(7)
        self._one = threading.Lock()

    def lose(self) -> None:
        """Lose the power, in one of the worlds."""
        with self._one:
            left = self._folder / f"life-{len(self.lives)}"
            left.mkdir()
            self._disk.lose_power(left, self._chance)
            self.lives.append((left, list(EFFECTS)))


async def test_a_job_goes_on_from_whatever_the_disk_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    EFFECTS.clear()
    with inserted() as disk:
        losses = Losses(disk, tmp_path)
        with monkeypatch.context() as patched:
            plain = connection._open
            patched.setattr(
                connection, "_open", lambda path, flags, busy_ms, _vfs: plain(path, flags, busy_ms, disk.name)
            )
            async with opened(tmp_path) as remit:
                job = (await remit.start(rounds())).id
                disk.watching = losses.lose
                LOSING.append(losses.lose)
                assert (await remit.ended(job)).state == "completed"
                disk.watching = None
                LOSING.clear()
                expected = await remit.service.jobs.result(job)
    parked = 0
    for left, happened in losses.lives:
        EFFECTS[:] = happened
        async with opened(left, ahead_s=3_600) as remit:
            parked += await lived_to_its_end(remit, job)
            assert await remit.service.jobs.result(job) == expected
            assert (await remit.service.streams.verify(job)).problems == ()
            assert (await remit.service.jobs.replay(job)).verdict == "same"
        charges = Counter(one for one in EFFECTS if one.startswith("charge "))
        assert charges.keys() == {f"charge {3 * number + 2}.0.1" for number in range(STEPS)}
        assert set(charges.values()) == {1}
        assert len({one for one in EFFECTS if one.startswith("note ")}) == STEPS, "every repetition kept its key"
    assert len(losses.lives) > 10
    assert parked > 0, "right after a charge nobody knows its outcome"


async def lived_to_its_end(remit: Remit, job: str) -> bool:
    """See a job to its end; a person says the outcome of uncertain steps. Whether any was."""
    decided: set[str] = set()

    def ready(row: JobRow) -> bool:
        return row.state in ENDED or "a decision" in row.waiting_for

    while (await until(remit, job, ready)).state not in ENDED:
        for step in (await remit.service.jobs.view(job)).steps:
            if step.state == "unknown" and step.step not in decided:
                decided.add(step.step)
                happened = f"charge {step.step}" in EFFECTS
                number = int(step.meta.args_preview.split(":")[1].rstrip("}"))
                await remit.service.steps.decide(job, step.step, "done" if happened else "retry", number * 10)
        await until(remit, job, lambda row: not ready(row) or row.state in ENDED)
    return bool(decided)
