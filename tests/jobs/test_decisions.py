"""What people say of attempts whose end is not recorded (rule 3)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from remit import Code
from remit.errors import StateError
from remit.jobs.inbox import KIND as INBOX
from remit.jobs.inbox import JobInbox
from remit.jobs.state import inbox_of, stream_of
from remit.journal.event import LeaseClaim
from remit.journal.journal import Journal
from remit.journal.kinds import StepDecided, decode
from tests.jobs.bank import NOW, Crash, in_doubt, pay
from tests.opened import OpenRemit, until_waiting


async def take(journal: Journal, job: str) -> None:
    """Lease a job, as a worker that has read nothing yet."""
    now = journal.clock.now()
    lease = await journal.acquire(
        stream_of(job), LeaseClaim(kind="job", owner="other", now=now, lease_until=now + 10**9)
    )
    assert lease is not None


async def test_a_decision_holds_for_the_attempt_it_was_made_on(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    given: Any = {"tools": [bank.tool], "recipes": [pay], "flags": NOW}
    job = await in_doubt(remit_in, bank)
    async with remit_in(**given, work=False) as remit:
        await remit.service.steps.decide(job, "2", "retry")
        # One more that nobody will use, as a Remit left it that did not look whether there was one.
        await remit.runtime.journal.post(inbox_of(job), INBOX, StepDecided(step="2", attempt=1, decision="retry"))
    bank.crashing = True
    bank.reached.clear()
    async with remit_in(**given) as remit:
        await bank.reached.wait()
    async with remit_in(**given) as remit:
        assert (await until_waiting(remit, job)).waiting_for == "a decision on step 2"
        assert [wait.attempt for wait in (await remit.service.jobs.view(job)).waits] == [2]
        with pytest.raises(StateError) as seen:
            await remit.service.steps.decide(job, "2", "retry", attempt=1)
        assert seen.value.code is Code.STEP_NOT_WAITING
        await remit.service.steps.decide(job, "2", "done", 5, attempt=2)
        assert await remit.job(job) == 5
    assert len(bank.calls) == 2


async def test_of_two_decisions_on_an_attempt_the_first_one_counts(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    given: Any = {"tools": [bank.tool], "recipes": [pay], "flags": NOW}
    job = await in_doubt(remit_in, bank)
    async with remit_in(**given, work=False) as one, remit_in(**given, work=False) as other:
        said = await asyncio.gather(
            one.service.steps.decide(job, "2", "retry", by="ann"),
            other.service.steps.decide(job, "2", "done", 7, by="bob"),
            return_exceptions=True,
        )
        (refused,) = filter(None, said)
        assert isinstance(refused, StateError)
        assert "decided already" in refused.message
        (kept,) = await one.service.streams.events(inbox_of(job))
        assert decode(kept.kind, kept.data) == (
            StepDecided(step="2", decision="retry", by="ann")
            if said[0] is None
            else StepDecided(step="2", decision="done", value=msgspec.Raw(b"7"), by="bob")
        )


async def test_nobody_decides_on_a_call_under_way(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=NOW) as remit:
        job = await remit.start(pay(5))
        await bank.reached.wait()
        with pytest.raises(StateError) as early:
            await remit.service.steps.decide(job.id, "2", "retry")
        assert early.value.code is Code.STEP_NOT_WAITING


async def test_a_decision_can_be_corrected_until_the_job_goes_on(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    given: Any = {"tools": [bank.tool], "recipes": [pay], "flags": NOW}
    job = await in_doubt(remit_in, bank)
    async with remit_in(**given, work=False) as remit:
        steps = remit.service.steps
        await steps.decide(job, "2", "done", 7, by="ann")
        await steps.decide(job, "2", "fail", by="ann", replace=True)
        await steps.decide(job, "2", "done", 8, by="bob", replace=True)
        left = [decode(event.kind, event.data) for event in await remit.service.streams.events(inbox_of(job))]
        assert [message.replaces for message in left if isinstance(message, StepDecided)] == [0, 1, 2]
    async with remit_in(**given) as remit:
        assert await remit.job(job) == 8
        with pytest.raises(StateError) as late:
            await remit.service.steps.decide(job, "2", "done", 9, replace=True)
        assert late.value.code is Code.JOB_FINISHED
        assert (await remit.service.jobs.replay(job)).verdict == "same"
        await remit.service.streams.verify(job)
    assert len(bank.calls) == 1


async def test_a_decision_that_a_worker_has_cannot_be_corrected(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    given: Any = {"tools": [bank.tool], "recipes": [pay], "flags": NOW}
    job = await in_doubt(remit_in, bank)
    async with remit_in(**given, work=False) as remit:
        await remit.service.steps.decide(job, "2", "retry", by="ann")
        # A worker takes the job: from now on it may have read the decision.
        await take(remit.runtime.journal, job)
        with pytest.raises(StateError, match="decided already, retry by ann") as late:
            await remit.service.steps.decide(job, "2", "fail", replace=True)
        assert late.value.code is Code.STEP_DECIDED
        assert len(await remit.service.streams.events(inbox_of(job))) == 1


async def test_a_correction_that_meets_a_worker_is_refused_whole(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    given: Any = {"tools": [bank.tool], "recipes": [pay], "flags": NOW}
    job = await in_doubt(remit_in, bank)
    async with remit_in(**given, work=False) as remit:
        journal = remit.runtime.journal
        await remit.service.steps.decide(job, "2", "retry", by="ann")
        seen = await journal.head(stream_of(job))
        assert seen is not None
        await take(journal, job)
        inbox = JobInbox(journal, job)
        assert not await inbox.correct(StepDecided(step="2", decision="fail"), None, seen)
        assert len(await remit.service.streams.events(inbox_of(job))) == 1


async def test_two_corrections_at_once_both_count_in_turn(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    given: Any = {"tools": [bank.tool], "recipes": [pay], "flags": NOW}
    job = await in_doubt(remit_in, bank)
    async with remit_in(**given, work=False) as one, remit_in(**given, work=False) as other:
        await one.service.steps.decide(job, "2", "fail", by="ann")
        await asyncio.gather(
            one.service.steps.decide(job, "2", "retry", by="ann", replace=True),
            other.service.steps.decide(job, "2", "done", 7, by="bob", replace=True),
        )
        left = [decode(event.kind, event.data) for event in await one.service.streams.events(inbox_of(job))]
        assert [message.replaces for message in left if isinstance(message, StepDecided)] == [0, 1, 2]
        inbox = JobInbox(one.runtime.journal, job)
        await inbox.refresh()
        found = inbox.decision("2", 1)
        assert found is not None
        assert found[0] == 3


async def test_a_correction_without_a_decision_is_the_first(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    given: Any = {"tools": [bank.tool], "recipes": [pay], "flags": NOW}
    job = await in_doubt(remit_in, bank)
    async with remit_in(**given) as remit:
        await remit.service.steps.decide(job, "2", "done", 6, replace=True)
        assert await remit.job(job) == 6


async def test_a_question_of_doubt_names_the_key_that_was_sent(remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    job = await in_doubt(remit_in, bank)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=NOW, work=False) as remit:
        (wait,) = (await remit.service.jobs.view(job)).waits
        assert (wait.attempt, wait.idempotency_key) == (1, bank.calls[0])
