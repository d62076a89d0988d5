"""A runner of tickets that is going to be killed; every side effect is noted in a witness file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from remit import CallContext, Remit, tool
from remit.settings import load
from remit.tickets.runner import RunnerConfig

WITNESS: list[Path] = []
"""Where effects are noted; the last one counts."""


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Not idempotent: must never happen twice."""
    fd = os.open(WITNESS[-1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{ctx.job.labels['ticket'] if ctx.job else ''} {number}\n".encode())
    os.close(fd)
    return number


def opened(url: str, folder: Path) -> Remit:
    """A Remit that knows the tool and derives replies; it works on nothing by itself."""
    flags = {
        "journal.url": url,
        "policy.rules": [{"effect": "allow", "tools": ["bank.*"]}],
        "app.principal": "alice",
        "tickets.derive_replies": True,
        "jobs.lease_seconds": 2,
    }
    return Remit(settings=load(env={}, cwd=folder, flags=flags), tools=[charge], work=False)


def run_until_killed(url: str, folder: str) -> None:
    """Work on tickets until there are none; entry point of the process that is killed."""
    WITNESS.append(Path(folder) / "witness")

    async def main() -> None:
        async with opened(url, Path(folder)) as remit:
            tickets = remit.service.tickets
            remit.runtime.engine.start(only=remit.awaited)
            config = RunnerConfig(owner=remit.runtime.engine.owner, limit=4, lease_sec=1)
            await tickets.runner(config, tickets.executor()).run(asyncio.Event(), once=True)

    asyncio.run(main())
