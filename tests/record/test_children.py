"""Where a child recipe stands: nothing records its end, so its steps and what came after them tell."""

from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.jobs.state import JobHistory
from remit.journal.kinds import ChildStarted, ErrorInfo, JobFailed
from remit.record.teller import child_states
from remit.service.jobs import Jobs
from tests.opened import OpenRemit, until


@tool("desk.write")
def write(text: str) -> str:
    """Write."""
    return text


@recipe("inner")
async def inner(run: Run) -> Any:
    """Write, which asks."""
    await run.now()
    return (await run.call("desk.write", {"text": "x"})).value


@recipe("outer")
async def outer(run: Run) -> Any:
    """Run another recipe, then ask."""
    found = await run.child(inner())
    await run.confirm("well?")
    return found


def history(*children: str) -> JobHistory:
    """That of a job with these child recipes."""
    found = JobHistory()
    found.children.update(dict.fromkeys(children, ChildStarted(step="7", name="inner", version="1")))
    return found


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"1": "ok"}, "running"),
        ({"7.1": "ok"}, "running"),
        ({"7.1": "ok", "7.2": "waiting"}, "waiting"),
        ({"7.1.1.1": "running", "7.1.2.1": "waiting"}, "waiting"),
        ({"7.1": "unknown", "7.2": "running"}, "unknown"),
        ({"7.1": "ok", "8": "ok"}, "ok"),
        ({"7.1": "failed", "8.1.1": "running"}, "ok"),
        ({"70.1": "waiting"}, "ok"),
    ],
)
def test_a_child_stands_where_its_steps_stand(states: dict[str, str], expected: str) -> None:
    assert child_states(history("7"), states.items()) == {"7": expected}


def test_at_the_end_of_its_job_a_child_is_done_or_failed() -> None:
    over = history("7", "2.1.1")
    over.end = JobFailed(error=ErrorInfo(code="JOB_FAILED", message="no luck", step="7.1"))
    assert child_states(over, {"7.1": "failed"}.items()) == {"7": "failed", "2.1.1": "ok"}


async def test_a_child_is_ok_only_once_it_is(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[inner, outer]) as remit:
        job = await remit.start(outer())
        await until(remit, job.id, lambda row: row.state == "waiting")
        jobs: Jobs = remit.service.jobs
        assert {step.name: step.state for step in (await jobs.view(job.id)).steps}["recipe.inner"] == "waiting"
        told = await remit.service.streams.narrative(job.id)
        assert {step.name: step.state for step in told.steps}["recipe.inner"] == "waiting"
        (question,) = await job.questions()
        await remit.service.confirmations.decide(question.confirmation, "approve")
        await until(remit, job.id, lambda row: row.state == "waiting" and question.confirmation not in row.waiting_for)
        assert {step.name: step.state for step in (await jobs.view(job.id)).steps}["recipe.inner"] == "ok"
