"""A process that asks a model under a budget, and kills itself somewhere between two writes of the journal."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any, Final

from remit import Remit, Run, Sampling, recipe
from remit.journal.journal import Journal
from remit.settings import load

QUESTIONS: Final = 12
_DEATH: Final = 0.06


@recipe("asks")
async def asks(run: Run) -> int:
    for number in range(QUESTIONS):
        await run.model(f"{number}?", sampling=Sampling(max_output_tokens=1_000))
    return QUESTIONS


def mortal(chance: random.Random, name: str) -> None:
    """Have a method of journals end the process before or after its work, now and then."""
    method = getattr(Journal, name)

    async def deadly(journal: Journal, *args: Any, **options: Any) -> Any:
        if chance.random() < _DEATH:
            os.kill(os.getpid(), signal.SIGKILL)
        result = await method(journal, *args, **options)
        if chance.random() < _DEATH:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(Journal, name, deadly)


async def main(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    budget = {"name": "team", "tokens": 11_000, "alert": [25, 50, 75, 100], "then": "tell", "each": "recipe"}
    flags: dict[str, Any] = {
        "models.default": "scripted:script.yaml",
        "models.budgets": [budget],
        "journal.url": str(folder / "j.db"),
    }
    async with Remit(settings=load(cwd=folder, file=None, env={}, flags=flags), recipes=[asks]) as remit:
        rows = await remit.service.jobs.rows()
        job = rows[0].job if rows else (await remit.start(asks())).id
        for name in ("commit", "append"):
            mortal(chance, name)
        assert await remit.job(job).result() == QUESTIONS


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
