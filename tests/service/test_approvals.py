"""Approvals that hold for later calls."""

from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.errors import StateError
from tests.opened import OpenRemit, until, until_waiting


@tool("pad.write")
def write(text: str) -> str:
    """Write."""
    return text


@tool("pad.write")
def rewrite(text: str, loudly: bool = False) -> str:
    """Write, in a later version."""
    return text.upper() if loudly else text


@recipe("pads")
async def pads(run: Run) -> Any:
    """Write."""
    return await run.attempt("pad.write", {"text": "x"})


async def asked(remit_in: OpenRemit) -> tuple[str, str]:
    """A job that waits for the approval of a call, and the question."""
    async with remit_in(tools=[write], recipes=[pads]) as remit:
        job = await remit.start(pads())
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        return job.id, question.confirmation


async def test_a_remembered_approval_is_of_the_contract_that_was_shown(remit_in: OpenRemit) -> None:
    job, question = await asked(remit_in)
    async with remit_in(tools=[rewrite], work=False) as remit:
        decided = await remit.service.confirmations.decide(question, "approve", by="bob")
        kept = await remit.service.approvals.remember(
            decided.confirmation, "everything", seconds=60, exact=False, by="bob"
        )
        assert kept is not None
        today = await remit.service.tools.view("pad.write")
        assert kept.contract_hash == decided.contract_hash != today.contract_hash
        assert (await remit.service.jobs.view(job)).principal == kept.principal == "alice"


async def test_only_an_approval_can_be_remembered(remit_in: OpenRemit) -> None:
    _, question = await asked(remit_in)
    async with remit_in(tools=[write], work=False) as remit:
        for state in ("pending", "denied"):
            with pytest.raises(StateError, match=f"is {state}"):
                await remit.service.approvals.remember(question, "everything", seconds=60, exact=False)
            if state == "pending":
                await remit.service.confirmations.decide(question, "deny", by="bob")
        assert await remit.service.approvals.active() == []


async def test_an_approval_is_remembered_where_the_tool_is_not(remit_in: OpenRemit) -> None:
    _, question = await asked(remit_in)
    async with remit_in(work=False) as remit:
        await remit.service.confirmations.decide(question, "approve", by="bob")
        kept = await remit.service.approvals.remember(question, "everything", seconds=60, exact=False, by="bob")
        assert kept is not None
    async with remit_in(tools=[write], recipes=[pads]) as remit:
        assert (await remit.service.tools.view("pad.write")).contract_hash == kept.contract_hash
        job = await remit.start(pads())
        assert (await job)["value"] == "x", "the next call is answered by it"


@recipe("twice")
async def twice(run: Run) -> Any:
    """Write twice at once."""
    return [one.status for one in await run.gather(*(run.attempt("pad.write", {"text": text}) for text in "ab"))]


async def test_a_remembered_approval_answers_what_is_asked_already(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[write], recipes=[twice]) as remit:
        job = await remit.start(twice())
        await until(remit, job.id, lambda row: row.state == "waiting")
        first, _second = await job.questions()
        await remit.service.confirmations.decide(first.confirmation, "approve")
        await remit.service.approvals.remember(first.confirmation, "job", seconds=60, exact=False)
        assert await job == ["ok", "ok"]


async def test_an_approval_is_tested_against_the_call_before_it_is_given(remit_in: OpenRemit) -> None:
    _, question = await asked(remit_in)
    async with remit_in(tools=[write], work=False) as remit:
        assert [await remit.service.approvals.tried(question, exact=exact) for exact in (True, False)] == ["", ""]
    async with remit_in(tools=[rewrite], work=False) as remit:
        assert "has changed since" in await remit.service.approvals.tried(question, exact=True)
    async with remit_in(work=False) as remit:
        assert await remit.service.approvals.tried(question, exact=True) == "pad.write is not a tool here"


async def test_nothing_is_remembered_if_the_settings_say_so(remit_in: OpenRemit) -> None:
    _, question = await asked(remit_in)
    async with remit_in(tools=[write], work=False) as remit:
        assert (await remit.service.confirmations.view(question)).rememberable
    async with remit_in(tools=[write], work=False, flags={"policy.remembered": False}) as remit:
        assert not (await remit.service.confirmations.view(question)).rememberable
        await remit.service.confirmations.decide(question, "approve", by="bob")
        with pytest.raises(StateError, match=r"policy\.remembered is false") as caught:
            await remit.service.approvals.remember(question, "everything", seconds=60, exact=False)
        assert caught.value.code.name == "REMEMBERING_OFF"
    async with remit_in(tools=[write], work=False) as remit:
        assert await remit.service.approvals.active() == []
