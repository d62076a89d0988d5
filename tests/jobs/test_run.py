"""What recipe code can do, and what it gets back."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from remit import CallError, Code, Confirmed, JobEndedError, Outcome, Run, recipe, tool
from remit.errors import NotCanonicalError, UsageError
from tests.opened import OpenRemit, until, until_waiting


@tool("math.add", level="L0")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool("math.fail", level="L0")
async def fail() -> int:
    """Always fails."""
    msg = "no luck"
    raise ValueError(msg)


@recipe("total")
async def total(run: Run, numbers: list[int]) -> int:
    """Add numbers one by one."""
    result = 0
    for number in numbers:
        result = (await run.call("math.add", {"a": result, "b": number})).value
    return result


async def test_a_recipe_calls_tools_and_returns_its_result(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[add], recipes=[total]) as remit:
        assert await remit.run(total([1, 2, 3])) == 6


async def test_calling_a_recipe_binds_arguments_and_refuses_wrong_ones() -> None:
    assert total(numbers=[1]).input == {"numbers": [1]}
    with pytest.raises(UsageError, match="number") as raised:
        total(digits=[1])  # type: ignore[call-arg]
    assert raised.value.code is Code.INVALID_INPUT


async def test_a_failed_call_raises_with_its_outcome_and_attempt_returns_it(remit_in: OpenRemit) -> None:
    @recipe("careful")
    async def careful(run: Run) -> list[str]:
        outcome: Outcome = await run.attempt("math.fail")
        try:
            await run.call("math.fail")
        except CallError as error:
            return [str(outcome.code), error.outcome.reason, str(error.code)]
        return []

    async with remit_in(tools=[fail], recipes=[careful]) as remit:
        assert await remit.run(careful()) == [
            "TOOL_EXEC_FAILED",
            "math.fail: ValueError: no luck",
            "TOOL_EXEC_FAILED",
        ]


async def test_an_unhandled_failure_ends_the_job_with_its_code_and_step(remit_in: OpenRemit) -> None:
    @recipe("careless")
    async def careless(run: Run) -> None:
        await run.now()
        await run.call("math.fail")

    async with remit_in(tools=[fail], recipes=[careless]) as remit:
        with pytest.raises(JobEndedError) as raised:
            await remit.run(careless())
        assert raised.value.code is Code.TOOL_EXEC_FAILED
        assert raised.value.step == "2"


async def test_branches_run_in_parallel_and_come_back_in_order(remit_in: OpenRemit) -> None:
    here, gate = 0, asyncio.Event()

    @tool("meet.all", level="L0")
    async def meet(number: int) -> int:
        nonlocal here
        here += 1
        if here == 3:
            gate.set()
        await gate.wait()
        return number

    @recipe("meeting")
    async def meeting(run: Run) -> list[int]:
        outcomes = await run.gather(*(run.call("meet.all", {"number": n}) for n in range(3)))
        return [outcome.value for outcome in outcomes]

    async with remit_in(tools=[meet], recipes=[meeting]) as remit:
        assert await remit.run(meeting()) == [0, 1, 2]


async def test_gather_waits_for_every_branch_then_raises_the_first_error_in_order(remit_in: OpenRemit) -> None:
    @recipe("mixed")
    async def mixed(run: Run) -> str:
        async def late() -> int:
            await run.sleep(0.01)
            return int((await run.call("math.fail", key="late")).value)

        try:
            await run.gather(late(), run.call("math.fail", {"wrong": 1}), run.call("math.add", {"a": 1, "b": 1}))
        except CallError as error:
            return error.step
        return ""

    async with remit_in(tools=[add, fail], recipes=[mixed]) as remit:
        job = await remit.start(mixed())
        assert await job == "1.0.late"
        assert [step.state for step in (await job.view()).steps if step.step == "1.2.1"] == ["ok"]


async def test_clock_and_chance_are_recorded(remit_in: OpenRemit) -> None:
    @recipe("dice")
    async def dice(run: Run) -> list[str]:
        return [str(await run.now()), str(await run.random()), str(await run.uuid())]

    async with remit_in(recipes=[dice]) as remit:
        job = await remit.start(dice())
        now, chance, unique = await job
        assert int(now) > 1_700_000_000_000_000
        assert 0 <= float(chance) < 1
        assert UUID(unique).version == 4
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_signal_wakes_the_job_and_one_sent_earlier_counts(remit_in: OpenRemit) -> None:
    @recipe("listen")
    async def listen(run: Run) -> list[int]:
        first = await run.wait_signal("go")
        second = await run.wait_signal("go")
        return [first, second]

    async with remit_in(recipes=[listen]) as remit:
        job = await remit.start(listen())
        assert (await until_waiting(remit, job.id)).waiting_for == "signal go"
        await job.signal("other", 0)
        await job.signal("go", 1)
        await job.signal("go", 2)
        assert await job == [1, 2]


async def test_a_signal_that_has_come_is_taken_and_one_that_has_not_is_not_waited_for(remit_in: OpenRemit) -> None:
    @recipe("glance")
    async def glance(run: Run) -> list[Any]:
        found = [await run.poll_signal("go", key="before")]
        await run.wait_signal("on")
        found += [await run.poll_signal("go", key=f"after-{number}") for number in range(3)]
        await run.now()
        return [*found, await run.poll_signal("go", key="late")]

    async with remit_in(recipes=[glance]) as remit:
        job = await remit.start(glance())
        await until_waiting(remit, job.id)
        await job.signal("go", 1)
        await job.signal("go", 2)
        await job.signal("on")
        assert await job == [None, 1, 2, None, None]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_wait_for_a_signal_can_time_out(remit_in: OpenRemit) -> None:
    @recipe("impatient")
    async def impatient(run: Run) -> str:
        try:
            await run.wait_signal("go", timeout=0.01)
        except TimeoutError as error:
            return str(error)
        return ""

    async with remit_in(recipes=[impatient]) as remit:
        job = await remit.start(impatient())
        assert "within 0.01 s" in await job
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_recipe_can_ask_a_person(remit_in: OpenRemit) -> None:
    @recipe("polite")
    async def polite(run: Run) -> Confirmed:
        return await run.confirm("Publish?", details={"pages": 3})

    async with remit_in(recipes=[polite]) as remit:
        job = await remit.start(polite())
        await until_waiting(remit, job.id)
        question = (await job.questions())[0]
        assert (question.question, question.args) == ("Publish?", {"pages": 3})
        await remit.service.confirmations.decide(question.confirmation, "deny", by="bob", reason="not today")
        assert await job == Confirmed(approved=False, by="bob", reason="not today")


async def test_a_child_recipe_is_part_of_its_parent(remit_in: OpenRemit) -> None:
    @recipe("parent")
    async def parent(run: Run) -> int:
        return await run.child(total([1, 2])) + await run.child(total([3]))

    async with remit_in(tools=[add], recipes=[parent]) as remit:
        job = await remit.start(parent())
        assert await job == 6
        assert [step.step for step in (await job.view()).steps] == ["1", "1.0.1", "1.0.2", "2", "2.0.1"]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_an_effect_from_a_task_of_ones_own_is_refused(remit_in: OpenRemit) -> None:
    @recipe("stray")
    async def stray(run: Run) -> None:
        await asyncio.gather(run.now(), run.now())

    async with remit_in(recipes=[stray]) as remit:
        with pytest.raises(JobEndedError) as raised:
            await remit.run(stray())
        assert raised.value.code is Code.FOREIGN_TASK
        assert "run.gather" in raised.value.remedy


async def test_a_key_is_used_once_per_branch(remit_in: OpenRemit) -> None:
    @recipe("twice")
    async def twice(run: Run) -> None:
        await run.now(key="start")
        await run.now(key="start")

    async with remit_in(recipes=[twice]) as remit:
        with pytest.raises(JobEndedError) as raised:
            await remit.run(twice())
        assert raised.value.code is Code.DUPLICATE_STEP_KEY


async def test_an_identifier_of_64_bits_passes_from_call_to_call(remit_in: OpenRemit) -> None:
    @tool("chat.send", level="L0")
    def send(chat_id: int) -> int:
        return chat_id + 1

    @recipe("pass_on")
    async def pass_on(run: Run, chat_id: int) -> int:
        return await run.call(send, await run.call(send, chat_id))

    async with remit_in(tools=[send], recipes=[pass_on]) as remit:
        job = await remit.start(pass_on(1234567890123456789))
        assert await job == 1234567890123456791
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_input_that_is_not_a_number_is_refused(remit_in: OpenRemit) -> None:
    @recipe("odd")
    async def odd(run: Run, ratio: float) -> float:
        return ratio

    async with remit_in(recipes=[odd]) as remit:
        with pytest.raises(NotCanonicalError, match=r"\$\.ratio is NaN"):
            await (await remit.start(odd(float("nan"))))


@pytest.mark.parametrize("value", [object(), {"mean": float("nan")}], ids=["object", "NaN"])
async def test_a_result_json_cannot_hold_fails_the_job(remit_in: OpenRemit, value: object) -> None:
    @recipe("odd")
    async def odd(run: Run) -> object:
        return value

    async with remit_in(recipes=[odd]) as remit:
        job = await remit.start(odd())
        with pytest.raises(JobEndedError) as raised:
            await job
        assert raised.value.code is Code.RESULT_NOT_ENCODABLE
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_job_can_be_cancelled_while_a_tool_runs(remit_in: OpenRemit) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool("slow.wait", level="L0")
    async def slow() -> None:
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    @recipe("slow")
    async def slow_recipe(run: Run) -> None:
        await run.call("slow.wait")

    async with remit_in(tools=[slow], recipes=[slow_recipe]) as remit:
        job = await remit.start(slow_recipe())
        await began.wait()
        await job.cancel("enough")
        with pytest.raises(JobEndedError) as raised:
            await job
        assert raised.value.code is Code.JOB_CANCELLED
        assert ended.is_set()


async def test_a_parked_job_can_be_cancelled(remit_in: OpenRemit) -> None:
    @recipe("parked")
    async def parked(run: Run) -> None:
        await run.wait_signal("never")

    async with remit_in(recipes=[parked]) as remit:
        job = await remit.start(parked())
        await until_waiting(remit, job.id)
        await job.cancel()
        row = await until(remit, job.id, lambda row: row.state == "cancelled")
        assert row.worker == ""


async def test_while_one_branch_waits_another_goes_on(remit_in: OpenRemit) -> None:
    heard = asyncio.Event()

    @tool("ear.hear", level="L0")
    async def hear() -> str:
        await heard.wait()
        return "heard"

    @recipe("both")
    async def both(run: Run) -> list[Any]:
        async def waiting() -> Any:
            payload = await run.wait_signal("go")
            heard.set()
            return payload

        async def calling() -> Any:
            return (await run.call("ear.hear")).value

        return await run.gather(waiting(), calling())

    async with remit_in(tools=[hear], recipes=[both]) as remit:
        job = await remit.start(both())
        await until(remit, job.id, lambda row: row.state == "running")
        await job.signal("go", "now")
        assert await job == ["now", "heard"]
