"""A worker process that is going to be killed: it runs one job and notes every side effect in a witness file."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

from remit import CallContext, Code, Remit, Run, recipe, tool
from remit.errors import StateError
from remit.service.service import Service
from remit.settings import load

STEPS = 60
CHARGES = 24
WITNESS: list[Path] = []
"""Where effects are noted; the last one counts."""


def witness(name: str, key: str) -> None:
    """Note that an effect happened, outside of everything Remit keeps; one write, so that a kill cannot tear it."""
    fd = os.open(WITNESS[-1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{name} {key}\n".encode())
    os.close(fd)


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Not idempotent: must never happen twice."""
    witness("charge", ctx.step)
    return number * 10


@tool("bank.note", level="L1", idempotent=True)
async def note(number: int, ctx: CallContext) -> int:
    """Idempotent: may be repeated, always with its own key."""
    witness("note", f"{ctx.step} {ctx.idempotency_key}")
    return number


@tool("bank.look", level="L0")
async def look(number: int) -> int:
    """Reads."""
    return number + 1


@recipe("rounds")
async def rounds(run: Run) -> list[int]:
    """Every kind of effect, in sequence and side by side."""
    results: list[int] = []
    for number in range(STEPS):
        looked = (await run.call("bank.look", {"number": number})).value
        outcomes = await run.gather(
            run.call("bank.charge", {"number": looked}),
            run.call("bank.note", {"number": looked}),
        )
        await run.now()
        results += [outcome.value for outcome in outcomes]
    return results


@tool("bank.refund", level="L1")
async def refund(number: int, ctx: CallContext) -> int:
    """Undoes a charge; not idempotent either."""
    witness("refund", str(number))
    return number


@recipe("fails_late")
async def fails_late(run: Run) -> None:
    """Charges, some side by side, and fails; every undo is made from the charge's value."""
    for number in range(0, CHARGES, 2):
        await run.gather(
            *(
                run.call("bank.charge", {"number": n}, undo=lambda value: ("bank.refund", {"number": value}))
                for n in (number, number + 1)
            )
        )
    raise ValueError("too late")


def settings(folder: Path) -> Any:
    """Settings of the test alone."""
    flags = {
        "journal.url": str(folder / "journal.db"),
        "policy.rules": [{"effect": "allow", "tools": ["bank.*"]}],
        "app.principal": "alice",
    }
    return load(env={}, cwd=folder, flags=flags)


def opened(folder: Path, *, work: bool = True) -> Remit:
    """A Remit that knows the worker's tools."""
    return Remit(settings=settings(folder), tools=[charge, note, look, refund], recipes=[rounds, fails_late], work=work)


async def settle(service: Service, job: str, remit: Remit, witness: list[str]) -> None:
    """Decide uncertain steps by what the witness saw, as a person would look at the bank's books."""
    seen = {line.split()[1] for line in witness if line.startswith("charge ")}
    refunds = {int(line.split()[1]) for line in witness if line.startswith("refund ")}
    view = await remit.service.jobs.view(job)
    if view.row.code == Code.JOB_ENDS_WORKERS.name:  # nobody can tell these kills from deaths of the job
        await service.jobs.resume(job)
    unknown = [step for step in view.steps if step.state == "unknown"]
    for step in unknown:
        number = int(step.meta.args_preview.split(":")[1].rstrip("}"))
        happened = number in refunds if step.name == "tool.bank.refund" else step.step in seen
        # What was decided before, no worker has lived long enough to hear of.
        with contextlib.suppress(StateError):
            await service.steps.decide(job, step.step, "done" if happened else "retry", number * 10)


def run_until_killed(folder: str, job: str) -> None:
    """Work on the job until it ends or waits for a decision; entry point of the process that is killed."""
    WITNESS.append(Path(folder) / "witness")

    async def main() -> None:
        async with opened(Path(folder)) as remit:
            mark = 0
            while True:
                mark = await remit.runtime.journal.changed(mark)
                row = await remit.service.jobs.row(job)
                if row.state not in {"pending", "running"}:
                    return

    asyncio.run(main())
