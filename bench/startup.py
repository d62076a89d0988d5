"""What a person waits for before anything happens."""

from __future__ import annotations

import asyncio
import sys

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against


async def _spawn(*arguments: str) -> Reading:
    watch = Watch()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
    return watch.millis(1)


async def bare() -> Reading:
    """An empty program, to its end."""
    return await _spawn("-c", "pass")


async def imported(_lab: Lab) -> list[Result]:
    """`import remit` with the names a program uses."""

    async def sample() -> Reading:
        return await _spawn("-c", "from remit import Remit, recipe, tool, Run")

    return await against("import remit, in full", "ms", sample, bare, "floor: an empty program", mark=Mark(120))


async def helped(_lab: Lab) -> list[Result]:
    """`remit --help`."""

    async def sample() -> Reading:
        return await _spawn("-m", "remit", "--help")

    return await against("remit --help", "ms", sample, bare, "floor: an empty program", mark=Mark(150))
