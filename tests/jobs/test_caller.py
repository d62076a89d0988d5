"""What a job's calls have in common: its limits hold for all of them, and its tools may know it."""

from __future__ import annotations

from typing import Any

import pytest

from remit import CallContext, Code, JobEndedError, Options, Run, recipe, tool
from remit.errors import PolicyError, UsageError
from remit.journal.kinds import JobCreated, ToolInvocationStarted, decode
from tests.opened import OpenRemit, until_waiting

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["*"]}]}


@tool("note.write", level="L1")
async def write(text: str) -> str:
    """Write a note."""
    return text


@tool("job.facts", level="L0")
async def facts(ctx: CallContext) -> Any:
    """Tell what is known of the job."""
    job = ctx.job
    assert job is not None
    job.input["changed"] = True
    return {"id": job.id, "recipe": job.recipe, "input": job.input, "labels": job.labels}


@recipe("writes")
async def writes(run: Run, count: int) -> int:
    """Write notes, with a wait in the middle."""
    for number in range(count):
        if number == 2:
            await run.wait_signal("go on")
        await run.call("note.write", {"text": str(number)})
    return count


@recipe("asks")
async def asks(run: Run, name: str) -> Any:
    """Ask a tool what it knows."""
    return (await run.call("job.facts", {})).value


async def test_a_tool_knows_the_job_that_calls_it_and_cannot_change_it(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[facts], recipes=[asks]) as remit:
        job = await remit.start(asks(name="x"), Options(labels={"team": "blue"}))
        assert await job == {"id": job.id, "recipe": "asks", "input": {"name": "x"}, "labels": {"team": "blue"}}


async def test_a_call_outside_jobs_has_no_job(remit_in: OpenRemit) -> None:
    seen: list[Any] = []

    @tool("job.peek", level="L0")
    async def peek(ctx: CallContext) -> None:
        seen.append(ctx.job)

    async with remit_in(tools=[peek]) as remit:
        assert (await remit.call("job.peek")).ok
    assert seen == [None]


async def test_rules_of_a_job_hold_for_its_calls_and_for_no_others(remit_in: OpenRemit) -> None:
    rules = ({"id": "no-notes", "effect": "deny", "tools": ["note.*"]},)
    async with remit_in(tools=[write], recipes=[writes], flags=ALLOW) as remit:
        narrowed = await remit.start(writes(count=1), Options(policy=rules))
        with pytest.raises(JobEndedError) as error:
            await narrowed
        assert error.value.code is Code.POLICY_DENIED
        assert await remit.run(writes(count=1)) == 1


async def test_a_job_may_call_only_the_tools_that_it_lists(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[writes], flags=ALLOW) as remit:
        with pytest.raises(JobEndedError) as error:
            await remit.run(writes(count=1), Options(tools=("fs.*",)))
        assert error.value.code is Code.POLICY_DENIED
        assert await remit.run(writes(count=1), Options(tools=("note.write",))) == 1


async def test_a_budget_is_what_it_was_after_the_job_went_on_in_another_process(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[writes], flags=ALLOW) as remit:
        job = (await remit.start(writes(count=9), Options(budget={"max_steps": 3}))).id
        await until_waiting(remit, job)
    async with remit_in(tools=[write], recipes=[writes], flags=ALLOW) as remit:
        await remit.job(job).signal("go on")
        with pytest.raises(JobEndedError) as error:
            await remit.job(job).result()
        assert error.value.code is Code.BUDGET_EXCEEDED
        events = [decode(event.kind, event.data) for event in await remit.runtime.journal.read(f"job/{job}")]
        assert sum(isinstance(event, ToolInvocationStarted) for event in events) == 3
        created = events[0]
        assert isinstance(created, JobCreated)
        assert created.budget == {"max_steps": 3}
        assert (await remit.service.jobs.replay(job)).verdict == "same"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (Options(policy=({"effect": "allow", "tools": ["*"]},)), PolicyError),
        (Options(tools=("a b",)), PolicyError),
        (Options(budget={"max_steps": 0}), UsageError),
        (Options(budget={"steps": 1}), UsageError),
    ],
)
async def test_limits_that_cannot_be_understood_start_nothing(
    options: Options, error: type[Exception], remit_in: OpenRemit
) -> None:
    async with remit_in(recipes=[writes]) as remit:
        with pytest.raises(error):
            await remit.run(writes(count=1), options)
        assert await remit.jobs() == []
