"""What was taken of limits, on one journal that several processes share."""

from __future__ import annotations

import asyncio
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import apsw
import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.gateway.takings import KIND, LimitPart, LimitUnprovenError, Takings, stream_of
from remit.journal.event import HeadQuery
from remit.journal.kinds import LimitReturned, LimitTaken
from remit.policy.limit import Limit
from tests.journal.storages import SqliteStorage

KEY = "r\0day\x0020000"
THREE = Limit(per="day", calls=3)
SUM = Limit(per="day", sum="cents", max=10)


HARM = {
    "head": (Code.HEAD_MISSING, "DELETE FROM heads WHERE kind = 'limit'"),
    "cut": (Code.HEAD_MISSING, "UPDATE heads SET seq = 1 WHERE kind = 'limit'"),
    "stream": (
        Code.HEAD_MISSING,
        """DELETE FROM events WHERE stream = (SELECT id FROM heads WHERE kind = 'limit');
        DELETE FROM heads WHERE kind = 'limit'""",
    ),
}
"""Done to the record of a limit by somebody who can write to the journal."""


def part(intent: str, limit: Limit = THREE, amount: str = "0", key: str = KEY, *, bound: bool = True) -> LimitPart:
    taken = LimitTaken(rule_id="r", intent=intent, tool_name="desk.pay", amount=amount)
    return LimitPart(limit=limit, key=key, bound=bound, taken=taken)


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


@pytest.mark.parametrize("harm", HARM)
async def test_what_was_taken_and_is_gone_gives_nothing_back(storage: SqliteStorage, harm: str) -> None:
    code, statements = HARM[harm]
    async with storage.open(SystemClock()) as journal:
        takings = Takings(journal)
        assert [await takings.take([part(str(i))]) for i in range(2)] == [True] * 2
        forge(storage, statements)
        with pytest.raises(LimitUnprovenError) as caught:
            await takings.take([part("2")])
        assert caught.value.code is code
        assert caught.value.outcome.status == "blocked"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE heads SET seq = 1 WHERE kind = 'limit'",
        "UPDATE events SET data = CAST(replace(CAST(data AS TEXT), '\"10\"', '\"0\"') AS BLOB) WHERE seq = 1",
    ],
)
async def test_a_record_that_does_not_chain_counts_for_nothing(storage: SqliteStorage, statement: str) -> None:
    async with storage.open(SystemClock()) as journal:
        assert await Takings(journal).take([part("a", SUM, "10")])
        assert await Takings(journal).take([part("b", SUM, "0", bound=False)])
    forge(storage, statement)
    async with storage.open(SystemClock()) as journal:
        with pytest.raises(LimitUnprovenError) as caught:
            await Takings(journal).totals([KEY], "")
        assert caught.value.code is Code.CHAIN_BROKEN


async def test_tasks_that_read_at_the_same_moment_prove_the_same(storage: SqliteStorage) -> None:
    async with storage.open(SystemClock()) as one, storage.open(SystemClock()) as other:
        theirs, ours = Takings(one), Takings(other)
        for number in range(5):
            assert await theirs.take([part(str(number), Limit(per="day", calls=9))])
            found = await asyncio.gather(*(ours.totals([KEY], "") for _ in range(4)))
            assert found == [{KEY: (number + 1, Decimal(0))}] * 4


def forge(storage: SqliteStorage, statements: str) -> None:
    """Write into the file with Remit's SQLite: another one in this process breaks its locks."""
    with closing(apsw.Connection(str(storage.path))) as db:
        db.set_busy_timeout(10_000)
        db.execute(statements)


async def test_a_call_that_was_undone_counts_no_more_and_gives_back_once(storage: SqliteStorage) -> None:
    clock = SystemClock()
    async with storage.open(clock) as one, storage.open(clock) as other:
        first, second = Takings(one), Takings(other)
        assert await first.take([part("a", SUM, "7.5")])
        assert await first.take([part("b", SUM, "2.5")])
        assert not await second.take([part("c", SUM, "2.5")])
        returned = LimitReturned(intent="a", step="0", undo_step="undo:0")
        gave = await asyncio.gather(*(takings.give_back(stream_of(KEY), returned) for takings in (first, second)))
        assert sorted(gave) == [False, True]
        assert not await first.give_back(stream_of(KEY), LimitReturned(intent="unknown"))
        for takings in (first, second, Takings(other)):
            assert await takings.totals([KEY], "") == {KEY: (1, Decimal("2.5"))}
        assert await second.take([part("c", SUM, "7.5")])
        assert not await first.take([part("d", SUM, "0.1")])
