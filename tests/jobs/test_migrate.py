"""Jobs that go on under other code and other tools, because somebody said how (`jobs.mismatch = "migrate"`)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from remit import CallContext, Migration, Run, migration, recipe, tool
from tests.opened import OpenRemit, until, until_waiting
from tests.patience import PATIENCE_S

MIGRATE = {"jobs.mismatch": "migrate", "policy.rules": [{"effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0}


def pinned(number: int, *migrates: str) -> Any:
    """One version of a recipe that adds, waits, and adds what its version adds."""

    @recipe("pinned", version=str(number), migrates=migrates)
    async def pinned(run: Run) -> list[Any]:
        said = [run.version, (await run.call("log.add", {"number": 1})).value]
        await run.wait_signal("go")
        if run.version == "1":
            await run.now()
        return [*said, number]

    return pinned


FIRST, SECOND = pinned(1), pinned(2, "1")


@tool("log.add", level="L0")
async def add(number: int) -> int:
    return number


async def parked(remit_in: OpenRemit) -> str:
    """A job of version 1 that waits for its signal."""
    async with remit_in(tools=[add], recipes=[FIRST], flags=MIGRATE) as remit:
        job = await remit.start(FIRST())
        await until_waiting(remit, job.id)
    return job.id


async def test_code_that_migrates_a_version_goes_on_with_its_jobs(remit_in: OpenRemit) -> None:
    job = await parked(remit_in)
    async with remit_in(tools=[add], recipes=[SECOND], flags=MIGRATE) as remit:
        await remit.job(job).signal("go")
        assert await remit.job(job) == ["1", 1, 2]
        kinds = [event.kind for event in await remit.service.streams.events(f"job/{job}")]
        assert "version_mismatch_recorded" in kinds
        assert (await remit.service.jobs.replay(job)).verdict == "same"
        fresh = await remit.start(SECOND())
        await fresh.signal("go")
        assert await fresh == ["2", 1, 2]


async def test_code_that_migrates_nothing_leaves_the_job_to_its_own_version(remit_in: OpenRemit) -> None:
    job = await parked(remit_in)
    async with remit_in(tools=[add], recipes=[pinned(2, "0")], flags=MIGRATE) as remit:
        await remit.job(job).signal("go")
        await until(remit, job, lambda row: row.code == "EXECUTION_VERSION_MISMATCH")
    async with remit_in(tools=[add], recipes=[FIRST], flags=MIGRATE) as remit:
        await remit.service.jobs.resume(job)
        assert await remit.job(job) == ["1", 1, 1]


class Bank:
    """A tool in two versions: the first takes euros, the second cents. Its first call never returns."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.reached = asyncio.Event()

        @tool("bank.charge", level="L1", idempotent=True, version="1")
        async def euros(euros: int, ctx: CallContext) -> int:
            return await self._take(ctx, euros)

        @tool("bank.charge", level="L1", idempotent=True, version="2")
        async def cents(cents: int, ctx: CallContext) -> int:
            return await self._take(ctx, cents)

        self.first, self.second = euros, cents
        self.hanging = True

    async def _take(self, ctx: CallContext, amount: int) -> int:
        self.sent.append((ctx.idempotency_key, amount))
        if self.hanging:
            self.reached.set()
            await asyncio.get_running_loop().create_future()
        return amount


@recipe("pay")
async def pay(run: Run) -> int:
    """Charge five euros, in the words of the bank's first version."""
    return int((await run.call("bank.charge", {"euros": 5})).value)


@migration("bank.charge", recorded="1")
def in_cents(args: dict[str, Any]) -> dict[str, Any]:
    """The second version counts in cents."""
    return {"cents": args["euros"] * 100}


async def cut_short(remit_in: OpenRemit, bank: Bank) -> str:
    """A payment under the bank's first version whose end is not recorded."""
    async with remit_in(tools=[bank.first], recipes=[pay], flags=MIGRATE) as remit:
        job = await remit.start(pay())
        await bank.reached.wait()
    bank.reached.clear()
    return job.id


async def test_a_call_that_is_made_again_is_migrated_and_keeps_its_key(remit_in: OpenRemit) -> None:
    bank = Bank()
    job = await cut_short(remit_in, bank)
    given: Any = {"tools": [bank.second], "recipes": [pay], "migrations": [in_cents], "flags": MIGRATE}
    async with remit_in(**given) as remit:  # cut short again, in its new form
        await bank.reached.wait()
    bank.hanging = False
    async with remit_in(**given) as remit:
        assert await remit.job(job) == 500
        assert (await remit.service.jobs.replay(job)).verdict == "same"
    assert [amount for _, amount in bank.sent] == [5, 500, 500]
    assert len({key for key, _ in bank.sent}) == 1


async def test_a_tool_that_nothing_migrates_leaves_the_job_as_it_is(remit_in: OpenRemit) -> None:
    bank = Bank()
    job = await cut_short(remit_in, bank)
    async with remit_in(tools=[bank.second], recipes=[pay], flags=MIGRATE) as remit:
        await until(remit, job, lambda row: row.code == "TOOL_SCHEMA_DRIFT")
    assert len(bank.sent) == 1


@pytest.mark.parametrize("said", [["not", "arguments"], KeyError("euros")])
async def test_a_migration_that_fails_is_named(
    remit_in: OpenRemit, caplog: pytest.LogCaptureFixture, said: Any
) -> None:
    bank = Bank()
    job = await cut_short(remit_in, bank)

    def broken(_args: dict[str, Any]) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    given: Any = {"tools": [bank.second], "recipes": [pay], "flags": MIGRATE}
    async with remit_in(**given, migrations=[Migration("bank.charge", "1", broken)]) as remit:
        row = await until_waiting(remit, job)
        assert row.waiting_for == "a decision on step 1", "it may have happened, so it does not fail"
    assert "the migration from 1 failed" in caplog.text
    assert len(bank.sent) == 1


HELD = threading.Event()


def spin(_args: dict[str, Any]) -> dict[str, Any]:
    while True:
        pass


def hang(args: dict[str, Any]) -> dict[str, Any]:
    HELD.wait()
    return args


def leave(_args: dict[str, Any]) -> dict[str, Any]:
    raise SystemExit(3)


def descend(args: dict[str, Any]) -> dict[str, Any]:
    return descend(args)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapt", "limit", "said"),
    [
        (spin, 0.2, "did not end within 0.2 s"),
        (hang, 0.2, "did not end within 0.2 s"),
        (leave, PATIENCE_S, "SystemExit: 3"),
        (descend, PATIENCE_S, "RecursionError"),
    ],
)
async def test_a_migration_that_does_not_end_is_bounded(
    remit_in: OpenRemit,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    adapt: Any,
    limit: float,
    said: str,
) -> None:
    monkeypatch.setattr("remit.gateway.stages.resolve.LIMIT_S", limit)
    HELD.clear()
    bank = Bank()
    job = await cut_short(remit_in, bank)
    given: Any = {"tools": [bank.second], "recipes": [pay], "flags": MIGRATE}
    try:
        async with remit_in(**given, migrations=[Migration("bank.charge", "1", adapt)]) as remit:
            row = await until_waiting(remit, job)
            assert row.waiting_for == "a decision on step 1", "it may have happened, so it does not fail"
    finally:
        HELD.set()
    assert said in caplog.text
    assert len(bank.sent) == 1
    for thread in threading.enumerate():
        if thread.name.startswith("remit:migration:"):
            await asyncio.to_thread(thread.join, PATIENCE_S)
            assert not thread.is_alive(), "one that loops is ended"
