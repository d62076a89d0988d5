"""What a person waits for before anything happens."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bench.measure import Result, Watch, against


async def _spawn(*arguments: str) -> float:
    watch = Watch()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
    return watch.micros(1) / 1_000


async def _bare() -> float:
    return await _spawn("-c", "pass")


async def imported(_folder: Path) -> Result:
    """`import remit` with the names a program uses."""

    async def sample() -> float:
        return await _spawn("-c", "from remit import Remit, recipe, tool, Run")

    return await against("import remit, in full", "ms", sample, _bare, "floor: an empty program")


async def helped(_folder: Path) -> Result:
    """`remit --help`."""

    async def sample() -> float:
        return await _spawn("-m", "remit", "--help")

    return await against("remit --help", "ms", sample, _bare, "floor: an empty program")
