"""What a person waits for before anything happens."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import write, writes
from remit import Remit

_NOTES: Final = Path(__file__).parents[1] / "examples/mcp/notes.py"


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


async def looked(lab: Lab) -> list[Result]:
    """Commands that only look, by processor time: they load what shows the record, and nothing that runs jobs."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        journal = str(Path(own) / "journal.db")
        async with Remit(journal, tools=[write], recipes=[writes]) as remit:
            job = await remit.start(writes(count=1))
            await remit.settled(job.id)
        results: list[Result] = []
        for command in (("jobs",), ("show", "last"), ("confirm",), ("work", "board"), ("tools",)):
            name = f"remit {' '.join(command)}, processor time"
            sample = partial(_processor, "--journal", journal, *command)
            floor = partial(_processor, "--help")
            results += await against(name, "ms", sample, floor, "floor: remit --help", mark=Mark(2.5, "floor"))
    return results


async def introduced(_lab: Lab) -> list[Result]:
    """The first answer of `remit mcp wrap` in front of a small server, by processor time of both."""
    server = [sys.executable, str(_NOTES), "notes.json"]
    with tempfile.TemporaryDirectory() as own:
        journal = str(Path(own) / "journal.db")
        wrap = [sys.executable, "-m", "remit", "--journal", journal, "mcp", "wrap", "--name", "notes", "--", *server]
        name = "remit mcp wrap, to its first answer: processor time"
        return await against(name, "ms", partial(_greeted, wrap, own), partial(_greeted, server, own), "floor: direct")


async def _greeted(command: list[str], folder: str) -> Reading:
    """The processor milliseconds until a server has answered `initialize`, and ended."""
    watch = Watch()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    process.stdin.write(json.dumps(hello).encode() + b"\n")
    assert b"serverInfo" in await process.stdout.readline()
    process.stdin.close()
    await process.wait()
    reading = watch.millis(1)
    assert reading.cpu_us is not None
    return Reading(reading.cpu_us / 1_000, reading.cpu_us)


async def _processor(*arguments: str) -> Reading:
    """The processor milliseconds of a command."""
    reading = await _spawn("-m", "remit", *arguments)
    assert reading.cpu_us is not None
    return Reading(reading.cpu_us / 1_000, reading.cpu_us)
