"""What was taken of limits, on one journal that several processes share."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.gateway.takings import KIND, Part, Takings
from remit.journal.event import HeadQuery
from remit.journal.kinds import LimitTaken
from remit.policy.limit import Limit
from tests.journal.storages import SqliteStorage

KEY = "r\0day\x0020000"
THREE = Limit(per="day", calls=3)
SUM = Limit(per="day", sum="cents", max=10)


def part(intent: str, limit: Limit = THREE, amount: str = "0", key: str = KEY, *, bound: bool = True) -> Part:
    taken = LimitTaken(rule_id="r", intent=intent, tool_name="desk.pay", amount=amount)
    return Part(limit=limit, key=key, bound=bound, taken=taken)


@pytest.fixture
def storage(tmp_path: Path) -> SqliteStorage:
    """A file."""
    return SqliteStorage(tmp_path / "journal.db")


async def test_no_two_processes_take_the_last_one(storage: SqliteStorage) -> None:
    clock = SystemClock()
    async with storage.open(clock) as one, storage.open(clock) as other:
        takings = [Takings(one), Takings(other)]
        took = await asyncio.gather(*(takings[i % 2].take([part(f"call-{i}")]) for i in range(12)))
        assert sum(took) == 3
        for each in takings:
            assert await each.totals([KEY], "") == {KEY: (3, Decimal(0))}
        (head,) = await one.heads(HeadQuery(kind=KIND))
        assert await one.verify(head.stream) == 3


async def test_a_sum_is_never_passed(storage: SqliteStorage) -> None:
    clock = SystemClock()
    async with storage.open(clock) as one, storage.open(clock) as other:
        takings = [Takings(one), Takings(other)]
        took = await asyncio.gather(*(takings[i % 2].take([part(f"c{i}", SUM, "2.5")]) for i in range(8)))
        assert sum(took) == 4
        assert await takings[0].totals([KEY], "") == {KEY: (4, Decimal(10))}


async def test_a_call_takes_its_part_once_whoever_makes_it_again(storage: SqliteStorage) -> None:
    async with storage.open(SystemClock()) as journal:
        assert await Takings(journal).take([part("one", SUM, "10")])
    async with storage.open(SystemClock()) as journal:
        again = Takings(journal)
        assert await again.totals([KEY], "one") == {KEY: (0, Decimal(0))}
        assert await again.take([part("one", SUM, "10")])
        assert await again.totals([KEY], "two") == {KEY: (1, Decimal(10))}
        assert not await again.take([part("two", SUM, "0.01")])


async def test_all_parts_are_taken_or_none(storage: SqliteStorage) -> None:
    other = KEY + "\0bob"
    async with storage.open(SystemClock()) as journal:
        takings = Takings(journal)
        assert await takings.take([part("a", SUM, "10"), part("a", key=other)])
        assert not await takings.take([part("b", SUM, "1"), part("b", key=other)])
        assert await takings.totals([KEY, other], "") == {KEY: (1, Decimal(10)), other: (1, Decimal(0))}


async def test_a_rule_that_has_spoken_already_bounds_nothing_more(storage: SqliteStorage) -> None:
    async with storage.open(SystemClock()) as journal:
        takings = Takings(journal)
        took = [await takings.take([part(str(i), Limit(per="day", calls=1), bound=i == 0)]) for i in range(3)]
        assert took == [True] * 3
