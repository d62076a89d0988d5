"""Workers and servers of a fleet, which are killed and frozen; every side effect is noted in a file."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from remit import CallContext, Remit, Run, recipe, tool
from remit.errors import JournalError
from remit.parts.tickets.runner import RunnerConfig
from tests.client.conftest import serving
from tests.crash import ticket_worker
from tests.crash.ticket_worker import FOLDER, LEASE_S, charge, note

STEPS = 10


@tool("bank.pay", level="L1")
async def pay(ctx: CallContext) -> int:
    """Not idempotent, as a charge; of a job."""
    note(f"{ctx.stream} {ctx.step}", "pays")
    return 1


@tool("bank.file", level="L1", idempotent=True)
async def file(ctx: CallContext) -> int:
    """May happen again, under the same key."""
    note(f"{ctx.stream} {ctx.step} {ctx.idempotency_key}", "files")
    return 1


@recipe("ten_steps")
async def ten_steps(run: Run) -> int:
    """Two steps that must not happen twice, and eight that may."""
    done = 0
    for number in range(1, STEPS + 1):
        done += int((await run.call("bank.pay" if number % 5 == 0 else "bank.file")).value)
    return done


def opened(url: str, folder: Path, engine: str) -> Remit:
    """A Remit of the fleet, which works on nothing by itself."""
    return ticket_worker.opened(url, folder, engine, tools=[charge, pay, file], recipes=[ten_steps])


def work(url: str, folder: str, placer: str) -> None:
    """Work on jobs and tickets until killed; entry point of a process."""
    FOLDER.append(Path(folder))

    async def main() -> None:
        async with opened(url, Path(folder), placer) as remit:
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

    while True:  # one that begins while PostgreSQL is away ends, and its supervisor begins it again
        with suppress(JournalError):
            asyncio.run(main())


def serve(url: str, folder: str, placer: str, port: int) -> None:
    """Serve until killed; entry point of a process."""
    FOLDER.append(Path(folder))

    async def main() -> None:
        async with opened(url, Path(folder), placer) as remit, serving(remit.service, port=port):
            await asyncio.Event().wait()

    while True:  # one that begins while PostgreSQL is away ends, and its supervisor begins it again
        with suppress(JournalError):
            asyncio.run(main())
