"""A runner of tickets that is going to be killed; every side effect is noted in a file of its folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from remit import CallContext, Remit, tool
from remit.parts.tickets.runner import RunnerConfig
from remit.settings import load

LEASE_S = 2
FOLDER: list[Path] = []
"""Where effects are noted; the last one counts."""


def note(line: str, book: str = "witness") -> None:
    """Append a line to a file, whoever else does."""
    fd = os.open(FOLDER[-1] / book, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


@tool("bank.charge", level="L1")
async def charge(number: int, ctx: CallContext) -> int:
    """Not idempotent: must never happen twice."""
    note(f"{ctx.job.labels['ticket'] if ctx.job else ''} {number}")
    return number


def opened(url: str, folder: Path, engine: str = "local", **given: Any) -> Remit:
    """A Remit that knows the tool, or those that are `given`, and derives replies; it works on nothing by itself."""
    flags = {
        "journal.url": url,
        "policy.rules": [{"effect": "allow", "tools": ["bank.*"]}],
        "app.principal": "alice",
        "tickets.derive_replies": True,
        "jobs.lease_seconds": LEASE_S,
        "jobs.engine": engine,
    }
    return Remit(settings=load(env={}, cwd=folder, flags=flags), **({"tools": [charge]} | given), work=False)


def run_until_killed(url: str, folder: str) -> None:
    """Work on tickets until there are none; entry point of the process that is killed."""
    FOLDER.append(Path(folder))

    async def main() -> None:
        async with opened(url, Path(folder)) as remit:
            tickets = remit.service.tickets
            remit.runtime.engine.start(only=remit.awaited)
            config = RunnerConfig(owner=remit.runtime.engine.owner, limit=4, lease_sec=1)
            await tickets.runner(config, tickets.executor()).run(asyncio.Event(), once=True)

    asyncio.run(main())
