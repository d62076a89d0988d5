"""Going on after a crash: nothing recorded is done again, and nobody guesses about a side effect (rules 2 and 3)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from remit import CallContext, Code, JobEndedError, Retry, Run, ToolResult, recipe, tool
from remit.errors import ProviderError
from remit.record.views import JobRow
from tests.jobs.bank import ALLOW, NOW, Crash, crash, pay
from tests.jobs.ledger import Ledger
from tests.opened import OpenRemit, until, until_waiting


def waits_for(what: str, row: JobRow) -> bool:
    """Whether a job is parked for this."""
    return row.waiting_for == what


async def test_an_idempotent_call_is_made_again_with_the_same_key(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=True)
    job = await crash(remit_in, bank)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags={"policy.rules": ALLOW}) as remit:
        assert await remit.job(job) == 5
        view = await remit.service.jobs.view(job)
        assert [step.attempt for step in view.steps] == [1, 2]
        assert {event.kind for event in await remit.service.streams.events(f"job/{job}")} >= {
            "recovery_started",
            "recovery_completed",
        }
    assert len(bank.calls) == 2
    assert len(set(bank.calls)) == 1


@pytest.mark.parametrize("decision", ["done", "fail", "retry"])
async def test_another_call_waits_for_a_person_to_say_what_came_of_it(remit_in: OpenRemit, decision: Any) -> None:
    bank = Crash(idempotent=False)
    job = await crash(remit_in, bank)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags={"policy.rules": ALLOW}) as remit:
        row = await until_waiting(remit, job)
        assert row.waiting_for == "a decision on step 2"
        assert len(bank.calls) == 1
        assert (await remit.service.jobs.view(job)).steps[1].state == "unknown"
        await remit.service.steps.decide(job, "2", decision, 7, by="bob", reason="the bank says no")
        if decision == "fail":
            with pytest.raises(JobEndedError, match="the bank says no") as raised:
                await remit.job(job)
            assert raised.value.code is Code.OUTCOME_UNKNOWN
        else:
            assert await remit.job(job) == (7 if decision == "done" else 5)
        assert len(bank.calls) == (2 if decision == "retry" else 1)
        assert (await remit.service.jobs.replay(job)).verdict == "same"


async def test_a_timeout_of_a_side_effect_is_uncertain_too(remit_in: OpenRemit) -> None:
    @tool("bank.slow", level="L1", timeout=0.01)
    async def slow() -> None:
        await asyncio.get_running_loop().create_future()

    @recipe("slow")
    async def slow_recipe(run: Run) -> None:
        await run.call("bank.slow")

    async with remit_in(tools=[slow], recipes=[slow_recipe], flags={"policy.rules": ALLOW}) as remit:
        job = await remit.start(slow_recipe())
        assert (await until_waiting(remit, job.id)).waiting_for == "a decision on step 1"
        await remit.service.steps.decide(job.id, "1", "done")
        await job


class Interrupted(Ledger):
    """Its first booking never returns."""

    def __init__(self, known: ToolResult | None) -> None:
        super().__init__(known)
        self.calls = 0
        self.reached = asyncio.Event()

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self.calls += 1
        if self.calls == 1:
            self.reached.set()
            await asyncio.get_running_loop().create_future()
        return ToolResult("booked again")


@recipe("book")
async def book(run: Run) -> str:
    """Book something."""
    return str((await run.call("ledger.book")).value)


@pytest.mark.parametrize(("known", "result", "calls"), [(ToolResult("booked"), "booked", 1), (None, "booked again", 2)])
async def test_a_provider_that_knows_is_asked_first(
    remit_in: OpenRemit, known: ToolResult | None, result: str, calls: int
) -> None:
    ledger = Interrupted(known)
    given: dict[str, Any] = {"providers": [ledger], "recipes": [book], "flags": NOW}
    async with remit_in(**given) as remit:
        job = await remit.start(book())
        await ledger.reached.wait()
    async with remit_in(**given) as remit:
        assert await remit.job(job.id) == result
    assert ledger.calls == calls


async def test_a_safe_call_is_retried_with_backoff_and_gives_up_after_its_attempts(remit_in: OpenRemit) -> None:
    calls = 0

    @tool("net.get", level="L0", retry=Retry(attempts=3, first_delay_ms=1))
    async def get(good_after: int) -> int:
        nonlocal calls
        calls += 1
        if calls <= good_after:
            raise ProviderError("down", cause=Code.ConnectionError)
        return calls

    @recipe("fetch")
    async def fetch(run: Run, good_after: int) -> int:
        return int((await run.call("net.get", {"good_after": good_after})).value)

    async with remit_in(tools=[get], recipes=[fetch]) as remit:
        assert await remit.run(fetch(2)) == 3
        calls = 0
        job = await remit.start(fetch(5))
        with pytest.raises(JobEndedError) as raised:
            await job
        assert raised.value.code is Code.TOOL_UNAVAILABLE
        assert calls == 3
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_call_is_retried_on_the_exceptions_that_its_tool_names(remit_in: OpenRemit) -> None:
    calls = 0

    @tool("net.get", level="L0", retry=Retry(attempts=3, first_delay_ms=1), retry_on=(LookupError,))
    async def get() -> int:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise KeyError("busy")
        return calls

    @recipe("fetch")
    async def fetch(run: Run) -> int:
        return await run.call(get)

    async with remit_in(tools=[get], recipes=[fetch]) as remit:
        assert await remit.run(fetch()) == 3


async def test_a_call_keeps_its_arguments_through_retries_whatever_the_recipe_does_to_them(remit_in: OpenRemit) -> None:
    heard: list[list[int]] = []
    shared: dict[str, Any] = {"numbers": [1]}

    @tool("net.send", level="L1", idempotent=True, retry=Retry(attempts=3, first_delay_ms=1))
    async def send(numbers: list[int]) -> int:
        heard.append(list(numbers))
        shared["numbers"].append(len(heard))
        if len(heard) < 3:
            raise ProviderError("down", cause=Code.ConnectionError)
        return len(heard)

    @recipe("sends")
    async def sends(run: Run) -> int:
        shared["numbers"] = [1]  # the same in every pass
        return int((await run.call("net.send", shared)).value)

    async with remit_in(tools=[send], recipes=[sends], flags={"policy.rules": ALLOW}) as remit:
        job = await remit.start(sends())
        assert await job == 3
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    assert heard == [[1], [1], [1]]


async def test_what_is_recorded_is_not_done_again(remit_in: OpenRemit) -> None:
    calls: list[int] = []

    @tool("log.add", level="L1")
    async def add(number: int) -> int:
        calls.append(number)
        return number

    @recipe("stepwise")
    async def stepwise(run: Run) -> int:
        for number in range(3):
            await run.call("log.add", {"number": number})
            await run.wait_signal(f"after-{number}")
        return len(calls)

    given: dict[str, Any] = {"tools": [add], "recipes": [stepwise], "flags": {"policy.rules": ALLOW}}
    async with remit_in(**given) as remit:
        job = await remit.start(stepwise())
    for number in range(3):
        async with remit_in(**given) as remit:
            await until(remit, job.id, partial(waits_for, f"signal after-{number}"))
            await remit.job(job.id).signal(f"after-{number}")
            if number == 2:
                assert await remit.job(job.id) == 3
    assert calls == [0, 1, 2]


async def test_a_recipe_that_leaves_the_recorded_path_is_stuck_not_lost(remit_in: OpenRemit) -> None:
    @tool("log.add", level="L0")
    async def add(number: int) -> int:
        return number

    def version(number: int) -> Any:
        @recipe("changed", version=str(number))
        async def changed(run: Run) -> int:
            await run.call("log.add", {"number": number})
            await run.wait_signal("go")
            return number

        return changed

    first, second = version(1), version(2)
    async with remit_in(tools=[add], recipes=[first]) as remit:
        job = await remit.start(first())
        await until_waiting(remit, job.id)
    async with remit_in(tools=[add], recipes=[second]) as remit:
        await remit.job(job.id).signal("go")
        row = await until(remit, job.id, lambda row: row.code == "NONDETERMINISTIC")
        assert row.state == "waiting"
        kinds = [event.kind for event in await remit.service.streams.events(f"job/{job.id}")]
        assert "version_mismatch_recorded" in kinds
    async with remit_in(tools=[add], recipes=[first]) as remit:
        await remit.service.jobs.resume(job.id)
        assert await remit.job(job.id) == 1


async def test_another_code_version_is_refused_where_policy_says_fail(remit_in: OpenRemit) -> None:
    def version(number: int) -> Any:
        @recipe("pinned", version=str(number))
        async def pinned(run: Run) -> int:
            await run.wait_signal("go")
            return number

        return pinned

    first, second = version(1), version(2)
    async with remit_in(recipes=[first]) as remit:
        job = await remit.start(first())
        await until_waiting(remit, job.id)
    async with remit_in(recipes=[second], flags={"jobs.mismatch": "fail"}) as remit:
        await remit.job(job.id).signal("go")
        await until(remit, job.id, lambda row: row.code == "EXECUTION_VERSION_MISMATCH")
    async with remit_in(recipes=[first], flags={"jobs.mismatch": "fail"}) as remit:
        await remit.service.jobs.resume(job.id)
        assert await remit.job(job.id) == 1
