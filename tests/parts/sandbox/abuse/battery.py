"""The whole battery for one subject: probes within, then programs that are judged from outside."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.scratch import scratch
from remit.process.enclosure import MB, ProgramRun, RunLimits, Spec, quiet
from remit_testing.sandbox import Trial
from tests.parts.sandbox.abuse.checks import CHECKS, Check, Seen, commands, machine
from tests.parts.sandbox.abuse.subjects import LIMITS, Finding, probed, trial, without
from tests.parts.sandbox.abuse.world import World, world

OUTSIDE: Final = "from outside"
_TIGHT: Final = {"wall_ms": 10_000, "memory_bytes": 256 * MB}
_PORT: Final = 18761
_AT_ONCE: Final = 6
"""Most checks wait for a limit; those that compare the machine run one after another."""


async def battery(name: str) -> list[Finding]:
    """The outcome of every probe and check; `name` is a driver's, or `none`: no sandbox at all."""
    with scratch() as folder:
        folder.chmod(0o755)
        with world(folder, LIMITS.tmp_bytes) as made:
            if name == "none":
                return without(made)
            found = await probed(name, made)
            return [*found, *await _outside(trial(name), name, made)]


async def _outside(tried: Trial, name: str, made: World) -> list[Finding]:
    await tried.driver.probe()
    places = asyncio.Semaphore(_AT_ONCE)
    found = await asyncio.gather(*(_judged(one, tried, made, places) for one in CHECKS if not one.alone))
    found += [await _judged(one, tried, made, places) for one in CHECKS if one.alone]
    before = machine()["cgroups"]
    await tried.driver.close()
    left = {one for one in machine()["cgroups"] & before if cleanup_process().mark in one}
    found.append(Finding(OUTSIDE, "a cgroup stays", "leaked" if left else "held", " ".join(sorted(left))))
    return found


async def _judged(one: Check, tried: Trial, made: World, places: asyncio.Semaphore) -> Finding:
    async with places:
        with scratch() as work:
            before = machine()
            spec = Spec(
                id=f"abuse-{CHECKS.index(one)}",
                argv=(*tried.python, "-c", one.code),
                workspace=work,
                env={"HIDDEN": "hidden-value"},
                limits=RunLimits(**(_TIGHT | one.limits)),
            )
            run = asyncio.ensure_future(tried.driver.exec(spec, quiet))
            if one.watched:
                await _watched(before, run)
            execution = await run
            leaked = one.judge(Seen(execution, work, made, before))
    return Finding(OUTSIDE, one.title, "leaked" if leaked else "held", leaked[:200])


async def _watched(seen: dict[str, set[str]], run: asyncio.Future[ProgramRun]) -> None:
    """While a program runs: every command line of the machine, and whether its port answers."""
    seen["commands"] = set()
    seen["reached"] = set()
    while not run.done():
        seen["commands"] |= {words for words in commands() if "hidden-value" in words}
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", _PORT)) == 0:
                seen["reached"].add("reached")
        await asyncio.wait([run], timeout=0.02)
