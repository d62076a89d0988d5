"""What a face needs to show and answer questions, in a process that is not the one that asked."""

from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.errors import UsageError
from tests.opened import OpenRemit, until, until_waiting


@tool("pad.write")
def write(text: str) -> str:
    """Write."""
    return text


@recipe("pads")
async def pads(run: Run) -> Any:
    """Write, then ask, then wait."""
    await run.attempt("pad.write", {"text": "x"})
    await run.confirm("well?")
    return await run.wait_signal("go", timeout=3_600)


async def asked(remit_in: OpenRemit) -> tuple[str, str]:
    """A job that waits for the approval of a call, and the question."""
    async with remit_in(tools=[write], recipes=[pads]) as remit:
        job = await remit.start(pads())
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        return job.id, question.confirmation


async def test_arguments_can_be_edited_by_a_process_that_has_listed_no_tools_yet(remit_in: OpenRemit) -> None:
    _, question = await asked(remit_in)
    async with remit_in(tools=[write], work=False) as remit:
        edited = await remit.service.confirmations.edit(question, {"text": "y"}, by="bob")
        assert (edited.args, edited.edited_from) == ({"text": "y"}, question)
    async with remit_in(work=False) as remit:
        with pytest.raises(UsageError, match="no tool's arguments"):
            await remit.service.confirmations.edit(edited.confirmation, {"text": "z"}, by="bob")


async def test_what_a_job_waits_for_is_open_until_it_came(remit_in: OpenRemit) -> None:
    job, question = await asked(remit_in)
    async with remit_in(tools=[write], recipes=[pads]) as remit:
        assert [(one.type, one.key) for one in (await remit.service.jobs.view(job)).waits] == [("human", question)]
        await remit.service.confirmations.decide(question, "approve", by="bob")
        await until(remit, job, lambda row: row.state == "waiting" and question not in row.waiting_for)
        (wait,) = (await remit.service.jobs.view(job)).waits
        assert (wait.step, wait.type, wait.reason) == ("2", "human", "well?")
        (asks,) = await remit.service.confirmations.pending(job)
        await remit.service.confirmations.decide(asks.confirmation, "deny", by="bob")
        row = await until(remit, job, lambda row: row.state == "waiting" and row.waiting_for == "signal go")
        (wait,) = (await remit.service.jobs.view(job)).waits
        assert (wait.type, wait.key, wait.due_at) == ("signal", "go", row.due_at)
        await remit.service.jobs.signal(job, "go")
        await remit.ended(job)
        assert (await remit.service.jobs.view(job)).waits == ()
