"""Resident memory of a process that takes many steps, or has many jobs parked; each measured in one of its own."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import msgspec

from bench.lab import ROOT, Lab
from bench.measure import Mark, Reading, Result, against
from bench.subject import parked, reads, remit_in
from remit import Remit, Run, recipe
from remit.clock import SystemClock
from remit.parts.agents.recipes import agent

EARLY, LATE, MILLION = 20_000, 120_000, 1_000_000
SHORT = 1_000
JOBS, BATCH, CONVERSATIONS = 10_000, 500, 2_000
FLAT = Mark(32)
"""Bytes per step, three megabytes for each hundred thousand: what an allocator may do by itself."""
_STATM = Path("/proc/self/statm")
_noted: list[int] = []
_SCRIPT = [
    {"say": "words " * 500, "call": [{"tool": "bench.read", "args": {"number": 1}}]},
    {"fault": "busy", "after": 3_600, "times": 100_000},
    {"say": "Done."},
]


def resident() -> int:
    """Bytes of this process in memory; where the system does not say, the most it ever had."""
    if _STATM.exists():
        return int(_STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@recipe("bench.noted")
async def noted(run: Run, early: int, late: int) -> None:
    """Read-only steps; memory is noted after `early` and after `late` of them."""
    for number in range(1, late + 1):
        await run.call("bench.read", {"number": number})
        if number in {early, late}:
            _noted.append(resident())


async def growth(lab: Lab) -> list[Result]:
    """Bytes that each further step of one job keeps in memory."""
    return await _growth(lab, LATE)


async def growth_million(lab: Lab) -> list[Result]:
    """The same up to a million steps."""
    return await _growth(lab, MILLION)


async def _growth(lab: Lab, late: int) -> list[Result]:
    name = f"memory, step {EARLY:,} to {late:,}"
    return await against(name, "bytes", _apart(lab, "steps", late), None, "growth per step", mark=FLAT, rounds=1)


async def growth_spread(lab: Lab) -> list[Result]:
    """Bytes that each further step keeps in memory where jobs are shorter and end."""
    name = f"memory, the same, {SHORT:,} a job"
    return await against(name, "bytes", _apart(lab, "spread", LATE), None, "growth per step", mark=FLAT, rounds=1)


async def parked_jobs(lab: Lab) -> list[Result]:
    """Bytes that a parked job keeps in memory."""
    return await against(
        "memory, parked job", "bytes", _apart(lab, "parked", JOBS), None, f"{JOBS:,} jobs on a timer", rounds=1
    )


async def parked_conversations(lab: Lab) -> list[Result]:
    """Bytes that a conversation keeps in memory while its provider wants to be left alone for an hour."""
    sample, note = _apart(lab, "conversations", CONVERSATIONS), f"{CONVERSATIONS:,} agents on a timer"
    return await against("memory, parked conversation", "bytes", sample, None, note, mark=Mark(2_048), rounds=1)


def _apart(lab: Lab, what: str, count: int) -> Callable[[], Awaitable[Reading]]:
    """Measure in a process of its own, which prints bytes per thing."""

    async def sample() -> Reading:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.memory", what, str(count), lab.folder, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        return Reading(msgspec.json.decode(out, type=float))

    return sample


async def steps(remit: Remit, count: int) -> float:
    """Growth per step of one long job."""
    early = min(EARLY, count // 2)
    await remit.run(noted(early, count))
    before, after = _noted
    return (after - before) / (count - early)


async def spread(remit: Remit, count: int) -> float:
    """Growth per step of jobs one after the other."""
    early = min(EARLY, count // 2)
    for _ in range(0, early, SHORT):
        await remit.run(reads(SHORT))
    before = resident()
    for _ in range(early, count, SHORT):
        await remit.run(reads(SHORT))
    return (resident() - before) / (count - early)


async def waiting(remit: Remit, count: int) -> float:
    """Growth per parked job, after as many steps of other jobs as make everything warm."""
    warm = min(100, count)
    await asyncio.gather(*[remit.run(reads(warm)) for _ in range(warm)])
    before = resident()
    for begun in range(0, count, BATCH):
        await asyncio.gather(*[remit.start(parked()) for _ in range(min(BATCH, count - begun))])
    await _until_parked(remit, count)
    return (resident() - before) / count


async def talking(remit: Remit, count: int) -> float:
    """Growth per agent that is parked in the middle of its conversation, after as many as make everything warm."""
    warm = min(BATCH, count)
    await _parked_agents(remit, warm)
    before = resident()
    await _parked_agents(remit, warm + count)
    return (resident() - before) / count


async def _parked_agents(remit: Remit, count: int) -> None:
    for _ in range(count - _parked(remit)):
        _ = await remit.start(agent(task="Read.", tools=["bench.read"]))
    await _until_parked(remit, count)


async def _until_parked(remit: Remit, count: int) -> None:
    while _parked(remit) < count:
        await SystemClock().sleep(0.1)


def _parked(remit: Remit) -> int:
    """Count parked jobs outside Remit: rows that it read for the count would be part of what is measured."""
    with contextlib.closing(apsw.Connection(remit.settings.journal.url, flags=apsw.SQLITE_OPEN_READONLY)) as database:
        count = database.execute("SELECT count(*) FROM heads WHERE kind = 'job' AND state = 'waiting'").get
    return int(count)


def _script(folder: Path) -> Path:
    script = folder / "script.json"
    script.write_bytes(msgspec.json.encode(_SCRIPT))
    return script


async def _main(what: str, count: int, folder: Path) -> float:
    measured = {"steps": steps, "spread": spread, "parked": waiting, "conversations": talking}[what]
    with tempfile.TemporaryDirectory(dir=folder) as own:
        flags = {"models.default": f"scripted:{_script(Path(own))}"}
        async with remit_in(Path(own), recipes=[noted], flags=flags) as remit:
            return await measured(remit, count)


if __name__ == "__main__":
    print(asyncio.run(_main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
