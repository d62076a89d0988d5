"""Remit: a recipe of two steps, then a wait; changed code resumes the job and tells what ran again."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from remit import Recipe, Remit, Run, recipe, tool
from remit.record.views import JobRow
from remit.settings import load

_ran: list[str] = []


@tool("bank.pay", level="L1")
def pay(cents: int) -> str:
    """Pay."""
    return _record(f"pay {cents}")


@tool("bank.pay_now", level="L1")
def pay_now(cents: int) -> str:
    """Pay, under another name."""
    return _record(f"pay_now {cents}")


@tool("bank.mail", level="L1")
def mail(cents: int) -> str:
    """Tell of the payment."""
    return _record(f"mail {cents}")


def _record(effect: str) -> str:
    _ran.append(effect)
    return effect


CHANGES: dict[str, list[tuple[str, int]]] = {
    "same": [("bank.pay", 1), ("bank.mail", 1)],
    "reorder": [("bank.mail", 1), ("bank.pay", 1)],
    "rename": [("bank.pay_now", 1), ("bank.mail", 1)],
    "other arguments": [("bank.pay", 2), ("bank.mail", 1)],
    "insert": [("bank.pay_now", 1), ("bank.pay", 1), ("bank.mail", 1)],
}


def _version(change: str) -> Recipe[[], list[str]]:
    @recipe("run")
    async def steps(run: Run) -> list[str]:
        results = [(await run.call(name, {"cents": cents})).value for name, cents in CHANGES[change]]
        await run.wait_signal("go")
        return results

    return steps


def _opened(journal: Path, code: Recipe[[], list[str]]) -> Remit:
    rule = {"id": "bank", "effect": "allow", "tools": ["bank.*"]}
    flags = {"journal.url": str(journal), "policy.rules": [rule]}
    settings = load(cwd=journal.parent, file=None, env={}, flags=flags)
    return Remit(recipes=[code], tools=[pay, pay_now, mail], settings=settings)


async def _reached(remit: Remit, job: str, condition: Callable[[JobRow], bool]) -> JobRow:
    mark = 0
    while True:
        mark = await remit.runtime.journal.changed(mark)
        row = await remit.service.jobs.row(job)
        if condition(row):
            return row


async def resumed(journal: Path, change: str) -> str:
    """Record a job with the first code, resume it with these steps; say what ran again and what it returned."""
    first = _version("same")
    async with _opened(journal, first) as remit:
        job = (await remit.start(first())).id
        await _reached(remit, job, lambda row: row.state == "waiting")
    _ran.clear()
    async with _opened(journal, _version(change)) as remit:
        await remit.job(job).signal("go")
        row = await _reached(remit, job, lambda row: row.state == "completed" or row.code != "")
        view = await remit.service.jobs.view(job)
    result = f"{row.code}: {view.error.message}" if view.error else f"the run returned {view.result}"
    return f"ran again: {_ran}; {result}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for kind in CHANGES:
            print(f"{kind}: {asyncio.run(resumed(Path(name) / f'{kind}.db', kind))}")
