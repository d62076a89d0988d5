"""Workers and servers of a fleet, which are killed and frozen; every side effect is noted in a file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from remit import CallContext, Remit, Run, recipe, tool
from remit.settings import load
from remit.tickets.runner import RunnerConfig
from tests.client.conftest import serving

STEPS = 10
LEASE_S = 2
FOLDER: list[Path] = []
"""Where effects are noted."""


def _note(book: str, line: str) -> None:
    fd = os.open(FOLDER[-1] / book, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Not idempotent: must never happen twice. Of a ticket."""
    _note("tickets", f"{ctx.job.labels['ticket'] if ctx.job else ''} {number}")
    return number


@tool("bank.pay", level="L1")
async def pay(ctx: CallContext) -> int:
    """Not idempotent either; of a job."""
    _note("pays", f"{ctx.stream} {ctx.step}")
    return 1


@tool("bank.file", level="L1", idempotent=True)
async def file(ctx: CallContext) -> int:
    """May happen again, under the same key."""
    _note("files", f"{ctx.stream} {ctx.step} {ctx.idempotency_key}")
    return 1


@recipe("ten_steps")
async def ten_steps(run: Run) -> int:
    """Two steps that must not happen twice, and eight that may."""
    done = 0
    for number in range(1, STEPS + 1):
        done += int((await run.call("bank.pay" if number % 5 == 0 else "bank.file")).value)
    return done


def opened(url: str, folder: Path) -> Remit:
    """A Remit of the fleet, which works on nothing by itself."""
    flags = {
        "journal.url": url,
        "policy.rules": [{"effect": "allow", "tools": ["bank.*"]}],
        "app.principal": "alice",
        "tickets.derive_replies": True,
        "jobs.lease_seconds": LEASE_S,
    }
    settings = load(env={}, cwd=folder, flags=flags)
    return Remit(settings=settings, tools=[charge, pay, file], recipes=[ten_steps], work=False)


def work(url: str, folder: str) -> None:
    """Work on jobs and tickets until killed; entry point of a process."""
    FOLDER.append(Path(folder))

    async def main() -> None:
        async with opened(url, Path(folder)) as remit:
            engine, tickets = remit.runtime.engine, remit.service.tickets
            while True:  # until PostgreSQL is back, as a server does
                engine.start()
                config = RunnerConfig(owner=engine.owner, limit=4, lease_sec=LEASE_S)
                runner = asyncio.create_task(
                    tickets.runner(config, tickets.executor()).run(asyncio.Event(), once=False)
                )
                failed = engine.stopped()
                await asyncio.wait({runner, failed}, return_when=asyncio.FIRST_COMPLETED)
                runner.cancel()
                await asyncio.wait({runner})
                await engine.restart()

    asyncio.run(main())


def serve(url: str, folder: str, port: int) -> None:
    """Serve until killed; entry point of a process."""
    FOLDER.append(Path(folder))

    async def main() -> None:
        async with opened(url, Path(folder)) as remit, serving(remit.service, port=port):
            await asyncio.Event().wait()

    asyncio.run(main())
