"""Eight servers that are killed at random while they are called: every call has an outcome, and nothing is left.

`REMIT_TEST_KILLS` and `REMIT_TEST_CALLS` set the size; what was counted and how long the end took is printed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

import pytest

from remit.clock import SystemClock
from remit.errors import ProviderError
from remit.providers.mcp import supervisor
from remit.providers.mcp.provider import McpProvider
from remit.settings.sections.mcp import McpSettings
from tests.gateway.world import opened
from tests.providers.mcp.world import Loaded, World, alive, descriptors

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_200),
    pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc"),
]

SERVERS: Final = 8
CALLERS: Final = 16
KILLS: Final = int(os.environ.get("REMIT_TEST_KILLS", "8"))
CALLS: Final = int(os.environ.get("REMIT_TEST_CALLS", "600"))


async def test_every_call_has_an_outcome_and_nothing_is_left(
    mcp: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STABLE_S", 0.01)  # else so many deaths are crash loops, and everything is parked
    chance = random.Random(7)
    pids: set[int] = set()
    before, tasks = descriptors(), len(asyncio.all_tasks())
    providers = [
        McpProvider(
            mcp.server(name=f"s{number}", level="L1"),
            McpSettings(),
            mcp.pins(),
            clock=SystemClock(),
            chance=Loaded(),
        )
        for number in range(SERVERS)
    ]
    outcomes: Counter[str] = Counter()
    numbers, kill_at = iter(range(CALLS)), set(chance.sample(range(CALLS), KILLS))

    async with opened(*providers, rules=[{"id": "all", "effect": "allow", "tools": ["*"]}]) as world:
        assert len(await world.catalog.tools()) == SERVERS * 7

        async def call() -> None:
            for number in numbers:
                if number in kill_at:
                    pids.add(await killed(chance.sample(providers, SERVERS)))
                name = f"mcp.s{chance.randrange(SERVERS)}.echo"
                outcome = await world.call(name, {"text": str(number)}, step=str(number))
                assert not outcome.ok or outcome.value == str(number), "nobody gets another's answer"
                outcomes[outcome.code.name if outcome.code else "ok"] += 1

        began = perf_counter()
        await asyncio.gather(*(call() for _ in range(CALLERS)))
        took = perf_counter() - began
        for provider in providers:
            with suppress(ProviderError):
                pids.add(pid_of(await provider._supervisor.connection()))
        began = perf_counter()
        await asyncio.gather(*(provider.close() for provider in providers))
        closing = perf_counter() - began
    with capsys.disabled():
        print(f"\n{CALLS} calls, {KILLS} kills: {dict(outcomes)} in {took:.1f} s; closed in {closing:.2f} s")  # noqa: T201 - the report of a run by hand
    assert sum(outcomes.values()) == CALLS
    assert set(outcomes) <= {"ok", "TOOL_UNAVAILABLE", "UNKNOWN_TOOL", "TOOL_QUARANTINED"}
    assert outcomes["ok"] >= CALLS - KILLS * CALLERS * 4
    assert len(pids) >= SERVERS
    assert not any(map(alive, pids))
    await mcp.strings.idle()
    assert len(asyncio.all_tasks()) <= tasks
    assert descriptors() <= before


async def killed(providers: list[McpProvider]) -> int:
    """SIGKILL the first server that can be had."""
    for provider in providers:
        with suppress(ProviderError, ProcessLookupError):  # it rests after too many kills, or was killed just now
            pid = pid_of(await provider._supervisor.connection())
            os.kill(pid, signal.SIGKILL)
            return pid
    raise AssertionError("no server is up")


def pid_of(connection: Any) -> int:
    pid: int = connection.process._transport.get_pid()
    return pid
