"""What is measured: a Remit over a journal of its own, two tools that do nothing, and recipes that call them."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from remit import Remit, Run, recipe, tool
from remit.jobs.recipe import Recipe
from remit.settings import load
from remit.tools.function import FunctionTool


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


@recipe("bench.parked")
async def parked(run: Run) -> None:
    """A job that waits for an hour."""
    await run.sleep(3_600)


@asynccontextmanager
async def remit_in(
    folder: Path,
    *,
    recipes: Iterable[Recipe[..., Any]] = (),
    tools: Iterable[FunctionTool[..., Any]] = (),
    flags: Mapping[str, Any] | None = None,
) -> AsyncIterator[Remit]:
    """A Remit whose journal is new, with more recipes and tools where they are given."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        options = {
            "journal.url": str(Path(own) / "journal.db"),
            "policy.rules": [{"effect": "allow", "tools": ["bench.*"]}],
            "jobs.concurrency": 64,
            **(flags or {}),
        }
        known: list[Recipe[..., Any]] = [reads, writes, nothing, parked, *recipes]
        settings = load(env={}, cwd=Path(own), flags=options)
        async with Remit(settings=settings, tools=[read, write, *tools], recipes=known) as remit:
            await remit.run(reads(1))
            yield remit
