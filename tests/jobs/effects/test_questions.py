from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe
from remit.jobs.state import stream_of
from remit.journal.event import HeadQuery, LeaseClaim
from remit.journal.writer import Draft
from tests.opened import OpenRemit

ASKED = HeadQuery(kind="confirmation")


@recipe("asks")
async def asks(run: Run) -> bool:
    """Ask a question."""
    return (await run.confirm("Shall we?")).approved


async def test_a_question_is_asked_in_the_transaction_that_records_that_the_job_waits_for_it(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(recipes=[asks], work=False) as remit:
        journal, commit = remit.runtime.journal, remit.runtime.journal.commit
        committed: list[list[str]] = []

        async def noted(*drafts: Draft, **more: Any) -> None:
            committed.append([kind for draft in drafts for kind, _ in draft.events])
            await commit(*drafts, **more)

        monkeypatch.setattr(journal, "commit", noted)
        job = await remit.start(asks())
        ended = remit.runtime.engine.ended(stream_of(job.id))
        remit.runtime.engine.start()
        assert (await ended).how == "parked"
        assert committed == [["job_waiting", "confirmation_requested"]]
        (question,) = await job.questions()
        await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        assert await job is True


async def test_a_pass_that_lost_its_job_asks_nobody(remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch) -> None:
    async with remit_in(recipes=[asks], work=False) as remit:
        journal, commit, engine = remit.runtime.journal, remit.runtime.journal.commit, remit.runtime.engine

        async def taken_over_first(*drafts: Draft, **more: Any) -> None:
            now = journal.clock.now()
            terms = LeaseClaim(kind="job", owner="another", now=now, lease_until=now + 10**9, state="running")
            assert await journal.acquire(stream_of(job.id), terms, over=engine.owner) is not None
            await commit(*drafts, **more)

        monkeypatch.setattr(journal, "commit", taken_over_first)
        job = await remit.start(asks())
        ended = engine.ended(stream_of(job.id))
        engine.start()
        assert (await ended).how == "lost"
        assert await journal.heads(ASKED) == []
