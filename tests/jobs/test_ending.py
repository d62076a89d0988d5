"""A job that ends takes its open questions with it: nobody is asked for what no one waits for."""

from __future__ import annotations

import pytest

from remit import JobEndedError, Remit, Run, recipe, tool
from remit.gateway.confirmation import Confirmation
from remit.gateway.confirmations import Confirmations
from remit.journal.event import HeadQuery
from tests.opened import OpenRemit, until_waiting


@tool("bank.charge", level="L1")
async def charge(cents: int) -> int:
    """Asks before it charges."""
    return cents


@recipe("asks")
async def asks(run: Run) -> list[object]:
    """Two questions at once: an approval, and one of the recipe's own."""
    return await run.gather(run.call("bank.charge", {"cents": 5}), run.confirm("Really?"))


@recipe("impatient")
async def impatient(run: Run) -> bool:
    """A question with a time limit."""
    return (await run.confirm("Quick?", timeout=0.01)).approved


async def test_a_cancelled_job_withdraws_what_it_asked(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[charge], recipes=[asks]) as remit:
        job = await remit.start(asks())
        await until_waiting(remit, job.id)
        asked = [question.confirmation for question in await job.questions()]
        assert len(asked) == 2
        await job.cancel()
        with pytest.raises(JobEndedError):
            await job
        confirmations = remit.runtime.services.confirmations
        assert await confirmations.pending() == []
        found = [await confirmations.find(one) for one in asked]
        assert [one.state for one in found] == ["withdrawn"] * 2
        assert {one.last.reason for one in found if one.last} == {"the job is cancelled"}


async def states(remit: Remit, job: str) -> list[str]:
    """What happened to a job's questions."""
    query = HeadQuery(kind="confirmation", prefix=f"job/{job}/")
    return [head.state for head in await remit.runtime.journal.heads(query)]


async def test_a_question_nobody_answered_in_time_is_expired_with_its_job(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[impatient]) as remit:
        job = await remit.start(impatient())
        assert await job is False
        assert await states(remit, job.id) == ["expired"]


async def test_an_answered_question_stays_as_it_was_answered(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[charge], recipes=[asks]) as remit:
        job = await remit.start(asks())
        await until_waiting(remit, job.id)
        for question in await job.questions():
            await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        await job
        assert sorted(await states(remit, job.id)) == ["approved", "used"]


async def test_who_answers_while_the_job_ends_is_not_overruled(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(tools=[charge], recipes=[asks]) as remit:
        job = await remit.start(asks())
        await until_waiting(remit, job.id)
        withdraw = Confirmations.withdraw

        async def too_late(self: Confirmations, found: Confirmation, reason: str, *, replaced_by: str = "") -> bool:
            if found.state == "pending":
                await remit.service.confirmations.decide(found.id, "deny", by="bob")
            return await withdraw(self, found, reason, replaced_by=replaced_by)

        monkeypatch.setattr(Confirmations, "withdraw", too_late)
        await job.cancel()
        assert (await remit.ended(job.id)).state == "cancelled"
        assert await states(remit, job.id) == ["denied", "denied"]
