from __future__ import annotations

import pytest

from remit import Run, recipe
from remit.jobs.effects import Wait
from remit.jobs.questions import Questions
from remit.journal.event import Head
from tests.opened import OpenRemit


@recipe("asks")
async def asks(run: Run) -> bool:
    """Ask a question."""
    return (await run.confirm("Shall we?")).approved


async def test_a_question_that_a_pass_which_lost_the_job_opens_meanwhile_is_taken_as_it_is(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(recipes=[asks], work=False) as remit:
        journal, head, ask = remit.runtime.journal, remit.runtime.journal.head, Questions.ask

        async def beside_a_lost_pass(self: Questions, wait: Wait, principal: str) -> None:
            async def opened_since(stream: str) -> Head | None:
                monkeypatch.setattr(journal, "head", head)
                found = await head(stream)
                await ask(self, wait, principal)
                return found

            monkeypatch.setattr(journal, "head", opened_since)
            await ask(self, wait, principal)

        monkeypatch.setattr(Questions, "ask", beside_a_lost_pass)
        job = await remit.start(asks())
        ended = remit.runtime.engine.ended(job.id)
        remit.runtime.engine.start()
        assert (await ended).how == "parked"
        (question,) = await job.questions()
        await remit.commands.decide(question.confirmation, "approve", by="bob")
        assert await job is True
