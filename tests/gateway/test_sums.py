from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from remit.clock import DAY
from remit.codes import Code
from remit.errors import JournalError
from remit.gateway import sums as module
from remit.gateway.budget import Spent
from remit.gateway.model_request import Allowance, BudgetClaim, DayLimits
from remit.gateway.sums import NAME, ModelSums
from remit.journal.event import JournalFold
from remit.journal.journal import Journal
from remit.journal.kinds import CommandCommitted, CommandStarted, JobForked
from remit.journal.prune import StubTerms, Uses, look_at, prune_unit
from remit.journal.sqlite.store import SqliteStore
from remit.journal.values import Folds
from remit_testing.clock import ManualClock


class World:
    """A journal in a file, opened by one process after the other."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "j.db")
        self.clock = ManualClock()
        self._count = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Journal]:
        journal = Journal(SqliteStore(self.path, self.clock), self.clock)
        try:
            yield journal
        finally:
            await journal.close()

    async def ask(
        self, journal: Journal, stream: str, *, tokens: int | None = 7, cost: float | None = None, **more: Any
    ) -> CommandStarted:
        """Record a question, and its answer unless `tokens` is None."""
        self._count += 1
        fields: dict[str, Any] = {
            "principal": "ada",
            "llm_provider": "openai",
            "llm_model": "m",
            "reserved_tokens": 100,
        } | more
        started = CommandStarted(invocation_id=f"inv_{self._count}", step="1", **fields)
        await journal.post(stream, "job", started)
        if tokens is not None:
            await journal.post(stream, "job", self.answer(started, tokens, cost))
        return started

    @staticmethod
    def answer(started: CommandStarted, tokens: int, cost: float | None = None) -> CommandCommitted:
        return CommandCommitted(step="1", invocation_id=started.invocation_id, token_count=tokens, cost=cost)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(module, "_NEW_EVENTS", 1)  # whatever is new is kept
    return World(tmp_path)


async def _of(journal: Journal, *days: int) -> dict[tuple[int, str, str, str], Spent]:
    sums = ModelSums(journal)
    await sums.refresh(days or sums.days)
    await sums.refresh(sums.days)
    return {(day, one.stream, one.principal, one.model): one.spent for day in sums.days for one in sums.of(day)}


async def test_sums_grow_with_what_is_new_in_any_process(world: World) -> None:
    today = world.clock.now() // DAY
    async with world.open() as journal:
        await world.ask(journal, "job/a")
        open_ = await world.ask(journal, "job/b", tokens=None, principal="bob", reserved_cost=0.5)
        found = await _of(journal)
    assert found == {
        (today, "job/a", "ada", "openai:m"): Spent(7, 0.0, 1, 1),
        (today, "job/b", "bob", "openai:m"): Spent(100, 0.5, 1, 0),
    }
    async with world.open() as journal:
        world.clock.advance(86_400)
        await journal.post("job/b", "job", world.answer(open_, 9, 0.25))
        await world.ask(journal, "job/a", llm_provider="openai-compatible", llm_url="http://h/v1")
        found = await _of(journal)
        assert await ModelSums(journal).differing() == []
    assert found[today, "job/b", "bob", "openai:m"] == Spent(9, 0.25, 1, 0)
    assert found[today + 1, "job/a", "ada", "openai-compatible:http://h/v1#m"] == Spent(7, 0.0, 1, 1)


async def test_what_a_retry_takes_over_is_counted_by_the_job_that_made_it(world: World) -> None:
    async with world.open() as journal:
        started = await world.ask(journal, "job/a")
        forked = JobForked(job="a", seq=2, hash="", step="1", taken=2)
        await journal.post("job/b", "job", forked, started, world.answer(started, 7))
        await world.ask(journal, "job/b", tokens=3)
        found = await _of(journal)
    assert sorted((key[1], spent.calls, spent.tokens) for key, spent in found.items()) == [
        ("job/a", 1, 7),
        ("job/b", 1, 3),
    ]


async def test_an_old_answer_in_a_copied_journal_is_settled(world: World) -> None:
    async with world.open() as journal:
        old = await world.ask(journal, "job/old", tokens=None)
        world.clock.advance(86_400 * 9)
        await world.ask(journal, "job/new")
        await _of(journal)
        await journal.post("job/old", "job", world.answer(old, 7))
        assert sorted(spent.tokens for spent in (await _of(journal)).values()) == [7, 7]
        assert await ModelSums(journal).differing() == []


async def test_a_process_that_dies_before_it_keeps_its_sums_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.open() as journal:
        await world.ask(journal, "job/a")
        await _of(journal)

    async def dies(_self: Folds, _folds: Any, _before: int) -> bool:
        raise ConnectionError("killed")

    async with world.open() as journal:
        await world.ask(journal, "job/a")
        with monkeypatch.context() as patched:
            patched.setattr(Folds, "keep", dies)
            with pytest.raises(ConnectionError):
                await _of(journal)
    async with world.open() as journal:
        (spent,) = (await _of(journal)).values()
    assert (spent.calls, spent.tokens) == (2, 14)


@pytest.mark.parametrize("code", [Code.JOURNAL_READ_ONLY, Code.JOURNAL_LOCKED, Code.JOURNAL_FULL])
async def test_sums_that_cannot_be_kept_are_right_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, code: Code
) -> None:
    async def fails(_self: Folds, _folds: Any, _before: int) -> bool:
        raise JournalError("no", code=code, remedy="")

    monkeypatch.setattr(Folds, "keep", fails)
    async with world.open() as journal:
        sums = ModelSums(journal)
        for count in range(1, 4):
            await world.ask(journal, "job/a")
            await sums.refresh([world.clock.now() // DAY])
            assert sums.spent(world.clock.now() // DAY, "ada").calls == count


async def test_processes_that_keep_sums_side_by_side_agree(world: World) -> None:
    async with world.open() as one, world.open() as other:
        first, second = ModelSums(one), ModelSums(other)
        for count in range(1, 5):
            await world.ask(one, "job/a")
            for sums in (first, second) if count % 2 else (second, first):
                await sums.refresh([world.clock.now() // DAY])
                assert sums.spent(world.clock.now() // DAY, "ada").calls == count
        assert await first.differing() == []


@pytest.mark.parametrize("data", [b"not json", b'{"version":9}', b'{"version":1,"last":[1,"job/x",1,"00"]}'])
async def test_sums_that_are_not_this_journals_are_made_anew(world: World, data: bytes) -> None:
    async with world.open() as journal:
        await world.ask(journal, "job/a")
        assert await journal.folds.keep([JournalFold(NAME, 900, data)], 0)
        (spent,) = (await _of(journal)).values()
        assert (spent.calls, spent.tokens) == (1, 7)
        assert [fold.position for fold in await journal.folds.read(NAME)] == [2]


async def test_sums_that_someone_changed_are_found(world: World) -> None:
    today = world.clock.now() // DAY
    async with world.open() as journal:
        await world.ask(journal, "job/a")
        await _of(journal)
        (cursor, day) = await journal.folds.read(NAME, [str(today)])
        forged = JournalFold(day.name, day.position, day.data.replace(b"[7,", b"[0,"))
        assert forged.data != day.data
        assert await journal.folds.keep([cursor, forged], cursor.position)
        assert await ModelSums(journal).differing() == [today]


async def test_a_question_reads_no_other_job_however_many_the_day_has_had(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.open() as journal:
        for number in range(50):
            await world.ask(journal, f"job/{number}")
        allowance = Allowance(journal, DayLimits(tokens=1_000_000))
        assert await allowance.claim(BudgetClaim(principal="ada", tokens=1, cost=0.0)) == ""
        looks: list[int] = []
        scan = Journal.scan

        async def counted(self: Journal, after: int = 0, kinds: Any = (), limit: int = 1_000) -> Any:
            page = await scan(self, after, kinds, limit)
            looks.append(len(page.events))
            return page

        async def none(*_given: Any) -> Any:
            raise AssertionError("a stream is read")

        monkeypatch.setattr(Journal, "scan", counted)
        monkeypatch.setattr(Journal, "page", none)
        monkeypatch.setattr(Journal, "heads", none)
        await world.ask(journal, "job/0")
        assert await allowance.claim(BudgetClaim(principal="ada", tokens=1, cost=0.0)) == ""
    assert looks == [2]


async def test_an_announced_call_counts_even_before_the_sums_hold_it(world: World) -> None:
    async with world.open() as journal:
        allowance = Allowance(journal, DayLimits(tokens=150))
        claim = BudgetClaim(principal="ada", tokens=100, cost=0.0)
        assert await allowance.claim(claim) == ""
        allowance.announced(claim, "inv_1")
        allowance.release(claim)
        other = BudgetClaim(principal="ada", tokens=60, cost=0.0)
        assert "used 100 tokens" in await allowance.claim(other)
        await world.ask(journal, "job/a", tokens=7)  # it is inv_1
        assert await allowance.claim(other) == ""


_WORKER = """
import asyncio, sys
from remit.clock import SystemClock
from remit.gateway import sums
from remit.journal.journal import Journal
from remit.journal.kinds import CommandCommitted, CommandStarted
from remit.journal.prune import StubTerms, Uses, look_at, prune_unit
from remit.journal.sqlite.store import SqliteStore

sums._NEW_EVENTS = 1

async def main(path, name):
    clock = SystemClock()
    journal, number = Journal(SqliteStore(path, clock), clock), 0
    kept = sums.ModelSums(journal)
    while True:
        number += 1
        invocation = f"{name}-{number}"
        await journal.post("job/a", "job", CommandStarted(invocation_id=invocation, step="1", principal="ada"))
        await journal.post("job/a", "job", CommandCommitted(step="1", invocation_id=invocation, token_count=7))
        await kept.refresh()
        print(number, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_processes_that_are_killed_anywhere_leave_sums_that_are_those_of_the_events(world: World) -> None:
    for name, lines in (("a", 3), ("b", 5), ("c", 8)):
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _WORKER, world.path, name, stdout=asyncio.subprocess.PIPE
        )
        assert worker.stdout is not None
        for _ in range(lines):
            await worker.stdout.readline()
        worker.kill()
        await worker.wait()
    async with world.open() as journal:
        assert await ModelSums(journal).differing() == []
        events = await journal.read("job/a")
        found = (await _of(journal)).values()
    assert sum(spent.calls for spent in found) == sum(event.kind == CommandStarted.KIND for event in events) >= 16
    assert sum(spent.tokens for spent in found) == 7 * sum(event.kind == CommandCommitted.KIND for event in events)


async def test_what_a_pruned_stream_took_stays_in_the_sums(world: World) -> None:
    async with world.open() as journal:
        for stream in ("job/1", "job/2"):
            await world.ask(journal, stream, tokens=7)
        day = world.clock.now() // DAY
        await ModelSums(journal).keep()
        head = await journal.head("job/2")
        assert head is not None
        await prune_unit(journal, [await look_at(journal, head)], Uses(journal, ()), StubTerms())
    async with world.open() as journal:
        sums = ModelSums(journal)
        await sums.refresh([day])
        assert {one.stream: one.spent.tokens for one in sums.of(day)} == {"job/1": 7, "job/2": 7}
        assert sums.spent(day, "ada").tokens == 14
        await world.ask(journal, "job/1", tokens=1)
        await sums.keep()
        assert await sums.differing() == []
    async with world.open() as journal:
        sums = ModelSums(journal)
        await sums.refresh([day])
        assert sums.spent(day, "ada").tokens == 15
