"""What is measured: a Remit over a journal of its own, two tools that do nothing, and recipes that call them."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remit import Remit, Run, recipe, tool
from remit.settings import load


@tool("bench.read", level="L0")
async def read(number: int) -> int:
    """Give the number back."""
    return number


@tool("bench.write", level="L1")
async def write(number: int) -> int:
    """Give the number back, as if it had changed something."""
    return number


@recipe("bench.reads")
async def reads(run: Run, count: int) -> int:
    """Read-only steps, one after the other."""
    for number in range(count):
        await run.call("bench.read", {"number": number})
    return count


@recipe("bench.writes")
async def writes(run: Run, count: int) -> int:
    """Side-effecting steps, one after the other."""
    for number in range(count):
        await run.call("bench.write", {"number": number})
    return count


@recipe("bench.nothing")
async def nothing(run: Run) -> None:
    """The shortest job."""


@asynccontextmanager
async def remit_in(folder: Path, **flags: object) -> AsyncIterator[Remit]:
    """A Remit whose journal is new."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        given = {
            "journal.url": str(Path(own) / "journal.db"),
            "policy.rules": [{"effect": "allow", "tools": ["bench.*"]}],
            "jobs.concurrency": 64,
            **flags,
        }
        settings = load(env={}, cwd=Path(own), flags=given)
        async with Remit(settings=settings, tools=[read, write], recipes=[reads, writes, nothing]) as remit:
            await remit.run(reads(1))
            yield remit
