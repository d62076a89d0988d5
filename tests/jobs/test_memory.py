"""Memory of what lasts, in bytes of objects: a job that takes step after step, and conversations that wait."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit import Remit, Run, recipe, tool
from remit.parts.agents.recipes import agent
from tests.opened import OpenRemit, local_engine, until_waiting

pytestmark = pytest.mark.slow

EARLY, LATE = 1_000, 3_000
A_STEP = 32
"""Bytes that each further step may keep: less than one number in a list, 40."""
FEW, MANY, AT_ONCE = 60, 180, 20
A_CONVERSATION = 1_024
"""Bytes that each further conversation may keep while it waits."""
SCRIPT = [
    {"say": "words " * 500, "call": [{"tool": "book.read", "args": {"page": 1}}]},
    {"fault": "busy", "after": 3_600, "times": 100_000},
    {"say": "Done."},
]


@tool("book.read", level="L0")
def read(page: int) -> int:
    """Read a page."""
    return page


@tool("book.mark", level="L1", idempotent=True)
def mark(page: int) -> int:
    """Mark a page, which is recorded before it goes on, with all that was read."""
    return page


def kept() -> int:
    """Bytes of all objects that something still holds."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.fixture
def traced() -> Iterator[list[int]]:
    tracemalloc.start()
    yield []
    tracemalloc.stop()


async def test_a_step_of_a_long_job_keeps_nothing_in_memory(remit_in: OpenRemit, traced: list[int]) -> None:
    @recipe("long")
    async def long(run: Run) -> None:
        for page in range(1, LATE + 1):
            await run.call("book.read", {"page": page})
            if page in {EARLY, LATE}:
                await run.call("book.mark", {"page": page})
                traced.append(kept())

    flags = {"policy.rules": [{"effect": "allow", "tools": ["book.*"]}]}
    async with remit_in(tools=[read, mark], recipes=[long], flags=flags) as remit:
        await remit.run(long())
    early, late = traced
    assert (late - early) / (LATE - EARLY) < A_STEP


async def test_a_conversation_that_waits_keeps_little_in_memory(
    remit_in: OpenRemit, tmp_path: Path, traced: list[int]
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    async with remit_in(tools=[read], flags={"models.default": f"scripted:{script}"}) as remit:
        for count in (FEW, MANY):
            for _ in range(count // AT_ONCE):
                await park(remit, AT_ONCE)
            traced.append(kept())
    few, many = traced
    assert (many - few) / MANY < A_CONVERSATION


async def park(remit: Remit, count: int) -> None:
    """Leave so many conversations waiting for a provider that wants to be left alone for an hour."""
    jobs = [(await remit.start(agent(task="Read.", tools=["book.read"]))).id for _ in range(count)]
    for job in jobs:
        await until_waiting(remit, job)
    while local_engine(remit).running:  # noqa: ASYNC110 - a pass ends a moment after it recorded its last event
        await asyncio.sleep(0)  # noqa: TID251 - gives it a turn
