"""What a question costs under a limit for the day, and a page of sums, in a journal of many jobs of today."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit.clock import SystemClock
from remit.gateway.model_request import Allowance, BudgetClaim, DayLimits
from remit.gateway.sums import ModelSums
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import CommandCommitted, CommandStarted
from remit.journal.sqlite.store import SqliteStore
from remit.record.usage import Usage

JOBS, REQUESTS, ROUNDS, QUESTIONS = 22_000, 11, 5, 200
_SUM = """
SELECT data ->> '$.llm_model', count(*), sum(data ->> '$.token_count') FROM events
WHERE kind = 'command_committed' GROUP BY 1
"""


async def sums(lab: Lab) -> list[Result]:
    """A claim beside one in a journal of a hundredth of the size, and the page beside a sum in SQL over the events."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        large, small = str(Path(own) / "large.db"), str(Path(own) / "small.db")
        await _filled(large, JOBS)
        await _filled(small, JOBS // 100)
        claims = await against(
            "question under a limit for the day",
            "µs",
            lambda: _claims(large),
            lambda: _claims(small),
            "floor: the same with a hundredth of the day's jobs",
            mark=Mark(1.5, "floor"),
            rounds=ROUNDS,
        )
        pages = await against(
            "sums of a day, by model",
            "ms",
            lambda: _page(large),
            lambda: _sql(large),
            "floor: a sum in SQL over the events",
            mark=Mark(1.0, "floor"),
            rounds=ROUNDS,
        )
    return [*claims, *pages]


async def _filled(path: str, jobs: int) -> None:
    """A journal of jobs of today with some questions to models each, and its sums."""
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    try:
        for number in range(jobs):
            writer = journal.writer(f"job/{number}", "job")
            events = [event for request in range(REQUESTS) for event in _asked(f"{number}-{request}")]
            await journal.append(writer, *events, synced=False, patch=HeadPatch(state="completed"))
        await ModelSums(journal).refresh()
    finally:
        await journal.close()


def _asked(name: str) -> tuple[CommandStarted, CommandCommitted]:
    started = CommandStarted(
        invocation_id=name, step="1", principal="ada", llm_provider="openai", llm_model="m", reserved_tokens=4_000
    )
    answer = CommandCommitted(step="1", invocation_id=name, llm_model="m", token_count=400, cost=0.001)
    return started, answer


async def _claims(path: str) -> Reading:
    """Microseconds of a question's look at its limit, each after another question was recorded."""
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    try:
        allowance = Allowance(journal, DayLimits(tokens=2**60))
        claim = BudgetClaim(principal="ada", tokens=1, cost=0.0)
        await allowance.claim(claim)
        watch = Watch()
        for number in range(QUESTIONS):
            await journal.post("job/0", "job", *_asked(f"more-{number}"))
            assert await allowance.claim(claim) == ""
        return watch.micros(QUESTIONS)
    finally:
        await journal.close()


async def _page(path: str) -> Reading:
    """Milliseconds of what `remit usage` asks for, in a process that has not looked before."""
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    try:
        watch = Watch()
        (row,) = await Usage(journal, Allowance(journal, DayLimits())).rows("model")
        taken = watch.millis(1)
    finally:
        await journal.close()
    assert row.calls >= JOBS * REQUESTS
    return taken


async def _sql(path: str) -> Reading:
    with sqlite3.connect(path) as db:
        watch = Watch()
        assert db.execute(_SUM).fetchall()
        return watch.millis(1)
