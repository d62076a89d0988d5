"""Sums of what models took, on PostgreSQL, by processes that look and write at once."""

import asyncio

import pytest

from remit.clock import DAY, SystemClock
from remit.gateway import sums as module
from remit.gateway.model_request import Allowance, BudgetClaim, DayLimits
from remit.gateway.sums import ModelSums
from remit.journal.journal import Journal
from remit.journal.kinds import CommandCommitted, CommandStarted
from tests.journal.storages import PostgresStorage
from tests.jumping import clock_at_noon


async def _ask(journal: Journal, stream: str, numbers: range) -> None:
    for number in numbers:
        name = f"{stream}-{number}"
        started = CommandStarted(invocation_id=name, step="1", principal="ada", reserved_tokens=100)
        await journal.post(stream, "job", started)
        await journal.post(stream, "job", CommandCommitted(step="1", invocation_id=name, token_count=7))


async def test_sums_are_whole_while_processes_write_and_keep_them(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_NEW_EVENTS", 1)
    clock = SystemClock()
    async with storage.open(clock) as one, storage.open(clock) as other:
        first, second = ModelSums(one), ModelSums(other)

        async def look(sums: ModelSums) -> None:
            for _ in range(20):
                await sums.refresh([clock.now() // DAY])

        await asyncio.gather(_ask(one, "job/a", range(20)), _ask(other, "job/b", range(20)), look(first), look(second))
        for sums in (first, second, ModelSums(one)):
            await sums.refresh()
            await sums.refresh(sums.days)
            spent = [found.spent for day in sums.days for found in sums.of(day)]
            assert sum(found.calls for found in spent) == 40
            assert sum(found.tokens for found in spent) == 280
        assert await ModelSums(other).differing() == []


async def test_what_one_process_announced_counts_in_another(storage: PostgresStorage) -> None:
    clock = clock_at_noon()
    async with storage.open(clock) as one, storage.open(clock) as other:
        await _ask(one, "job/a", range(10))
        claim = BudgetClaim(principal="ada", tokens=40, cost=0.0)
        assert "used 70 tokens" in await Allowance(other, DayLimits(tokens=100)).claim(claim)
        assert await Allowance(other, DayLimits(tokens=110)).claim(claim) == ""
