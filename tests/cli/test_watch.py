from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.cli.watch import JobWatch, Silent, followed
from remit.jobs.state import stream_of
from remit.record.job_story import JobStory
from remit.record.views import ConfirmationView, JobRow
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


@tool("memo.write")
def write(text: str) -> str:
    """Write."""
    return text


@recipe("memo")
async def memo(run: Run) -> str:
    """Write a memo."""
    return str((await run.call("memo.write", {"text": "x"})).value)


@recipe("sleepy")
async def sleepy(run: Run) -> str:
    """Ask, and sleep meanwhile."""

    async def nap() -> str:
        await run.sleep(0.05)
        return "slept"

    async def ask() -> str:
        return str((await run.confirm("well?")).approved)

    return ", ".join(await run.gather(nap(), ask()))


class Recorder(Silent):
    """A view that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def show(self, jobs: Sequence[JobStory]) -> None:
        self.told.append(jobs[0].row.state)

    def pause(self) -> None:
        self.told.append("pause")

    def go_on(self) -> None:
        self.told.append("go on")

    def parked(self, job: JobStory) -> None:
        self.told.append(f"parked: {job.row.waiting_for.split()[0]}")


class Answers:
    """An asker that answers as it is told, or waits for ever."""

    def __init__(self, remit: Remit, decision: Any = None) -> None:
        self.current = ""
        self.withdrawn = asyncio.Event()
        self.asked = asyncio.Event()
        self._remit = remit
        self._decision = decision

    async def ask(self, question: ConfirmationView) -> bool:
        self.current = question.confirmation
        self.asked.set()
        if self._decision is None:
            await asyncio.Event().wait()
        if self._decision == "later":
            return False
        self.current = ""
        await self._remit.service.confirmations.decide(question.confirmation, self._decision, by="bob")
        return True

    def withdraw(self) -> None:
        self.withdrawn.set()


OPEN: dict[str, Any] = {"tools": [write], "recipes": [memo, sleepy], "work": False}


async def start(remit: Remit, bound: Any) -> JobStory:
    job = await remit.start(bound)
    remit.runtime.engine.start(only={stream_of(job.id)})
    return JobStory(await job.row())


async def test_a_job_that_waits_for_a_person_is_left_to_them(remit_in: OpenRemit) -> None:
    async with remit_in(**OPEN) as remit:
        job = await start(remit, memo())
        await JobWatch(remit, [job], Recorder(), None, patient=False).run()
        assert (job.row.state, job.row.stuck, job.risky) == ("waiting", False, False)
        assert [wait.type for wait in job.waits] == ["human"]


async def test_a_job_with_a_timer_under_way_is_not_left_before_it_fired(remit_in: OpenRemit) -> None:
    async with remit_in(**OPEN) as remit:
        job = await start(remit, sleepy())
        await JobWatch(remit, [job], Recorder(), None, patient=False).run()
        assert [wait.type for wait in job.waits] == ["human"], "the timer has fired"


async def test_patience_waits_for_others_and_says_so_once(remit_in: OpenRemit) -> None:
    async with remit_in(**OPEN) as remit:
        job, view = await start(remit, memo()), Recorder()
        watching = asyncio.create_task(JobWatch(remit, [job], view, None, patient=True).run())
        while not (questions := await remit.service.confirmations.pending(job.job)):
            await remit.runtime.journal.changed(0)
        await remit.service.confirmations.decide(questions[0].confirmation, "approve", by="bob")
        await watching
        assert job.row.state == "completed"
        assert view.told.count("parked: confirmation") <= 1


async def test_questions_are_put_to_the_person_while_the_view_rests(remit_in: OpenRemit) -> None:
    async with remit_in(**OPEN) as remit:
        job, view = await start(remit, memo()), Recorder()
        await JobWatch(remit, [job], view, Answers(remit, "approve"), patient=False).run()
        assert job.row.state == "completed"
        assert view.told.index("pause") < view.told.index("go on")


async def test_what_follows_a_look_that_took_long_is_seen_soon(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(**OPEN) as remit:
        job = await start(remit, memo())
        clock, row, waited = remit.runtime.journal.clock, remit.service.jobs.row, 0.0

        async def late(name: str) -> JobRow:
            nonlocal waited
            waited += 600.0  # for a server that was away
            return await row(name)

        monotonic = clock.monotonic
        monkeypatch.setattr(type(clock), "monotonic", lambda _clock: monotonic() + waited)
        monkeypatch.setattr(remit.service.jobs, "row", late)
        async with asyncio.timeout(PATIENCE_S):
            await JobWatch(remit, [job], Recorder(), Answers(remit, "approve"), patient=False).run()
        assert job.row.state == "completed"


async def test_a_question_left_for_later_is_not_asked_again(remit_in: OpenRemit) -> None:
    async with remit_in(**OPEN) as remit:
        job = await start(remit, memo())
        await JobWatch(remit, [job], Recorder(), Answers(remit, "later"), patient=False).run()
        assert job.row.state == "waiting"


async def test_a_question_answered_elsewhere_is_withdrawn(remit_in: OpenRemit) -> None:
    async with remit_in(**OPEN) as remit:
        job, answers = await start(remit, memo()), Answers(remit)
        watching = asyncio.create_task(JobWatch(remit, [job], Recorder(), answers, patient=False).run())
        await answers.asked.wait()
        await remit.service.confirmations.decide(answers.current, "deny", by="bob")
        await watching
        assert answers.withdrawn.is_set()
        assert job.row.state == "failed"


class Edits(Answers):
    """An asker that edits the question once told to, and leaves what it became on the screen."""

    def __init__(self, remit: Remit) -> None:
        super().__init__(remit)
        self.put: list[str] = []
        self.told, self.edited = asyncio.Event(), asyncio.Event()

    async def ask(self, question: ConfirmationView) -> bool:
        self.put.append(question.confirmation)
        self.current = question.confirmation
        self.asked.set()
        await self.told.wait()
        self.current = ""
        edited = await self._remit.service.confirmations.edit(question.confirmation, {"text": "y"}, by="bob")
        self.current = edited.confirmation
        self.edited.set()
        return bool(await asyncio.Event().wait())


async def test_a_question_edited_while_the_watch_looks_stays_on_the_screen(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(**OPEN) as remit:
        job, person = await start(remit, memo()), Edits(remit)
        pending, again = remit.service.confirmations.pending, asyncio.Event()

        async def edited_meanwhile(job: str | None = None) -> list[ConfirmationView]:
            found = await pending(job)
            if person.edited.is_set():
                again.set()
            elif person.asked.is_set():
                person.told.set()
                await person.edited.wait()
            return found

        monkeypatch.setattr(remit.service.confirmations, "pending", edited_meanwhile)
        watching = asyncio.create_task(JobWatch(remit, [job], Recorder(), person, patient=False).run())
        await again.wait()
        assert (len(person.put), person.withdrawn.is_set()) == (1, False)
        await remit.service.confirmations.decide(person.current, "approve", by="bob")
        await watching
        assert (job.row.state, person.withdrawn.is_set()) == ("completed", True)


async def test_a_question_edited_here_stays_on_the_screen_while_its_job_waits_for_neither(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(**OPEN) as remit:
        job, person = await start(remit, memo()), Edits(remit)
        confirmations = remit.runtime.services.confirmations
        pending, recall, between = remit.service.confirmations.pending, confirmations.recall, asyncio.Event()

        async def once_looked(caller: str, confirmation: str) -> Any:
            await between.wait()
            return await recall(caller, confirmation)

        def withdraw() -> None:
            person.withdrawn.set()
            between.set()

        async def looks(of: str | None = None) -> list[ConfirmationView]:
            person.told.set()
            found = await pending(of)
            if person.edited.is_set() and not job.waits:
                between.set()
            return found

        monkeypatch.setattr(confirmations, "recall", once_looked)
        monkeypatch.setattr(remit.service.confirmations, "pending", looks)
        monkeypatch.setattr(person, "withdraw", withdraw)
        watching = asyncio.create_task(JobWatch(remit, [job], Recorder(), person, patient=False).run())
        await between.wait()
        assert (len(person.put), person.withdrawn.is_set()) == (1, False)
        await remit.service.confirmations.decide(person.current, "approve", by="bob")
        await watching
        assert job.row.state == "completed"


async def test_a_stop_while_a_question_is_withdrawn_is_heard(remit_in: OpenRemit) -> None:
    class Leaves(Answers):
        """An asker that takes a moment to leave the screen."""

        def __init__(self, remit: Remit) -> None:
            super().__init__(remit)
            self.leaves, self.left = asyncio.Event(), asyncio.Event()

        async def ask(self, question: ConfirmationView) -> bool:
            try:
                return await super().ask(question)
            finally:
                self.leaves.set()
                await self.left.wait()

    async with remit_in(**OPEN) as remit:
        job, person = await start(remit, memo()), Leaves(remit)
        watching = asyncio.create_task(JobWatch(remit, [job], Recorder(), person, patient=True).run())
        await person.asked.wait()
        await remit.service.confirmations.decide(person.current, "deny", by="bob")
        await person.leaves.wait()
        watching.cancel()
        person.left.set()
        with pytest.raises(asyncio.CancelledError):
            await watching


@pytest.mark.parametrize("screen", [True, False], ids=["on the screen", "not yet shown"])
async def test_an_answer_given_while_the_watch_looks_is_heard(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch, screen: bool
) -> None:
    async with remit_in(**OPEN) as remit:
        job, answers = await start(remit, memo()), Answers(remit)
        pending = remit.service.confirmations.pending

        async def answered_first(job: str | None = None) -> list[ConfirmationView]:
            found = await pending(job)
            if found and answers.asked.is_set() is screen:
                await remit.service.confirmations.decide(found[0].confirmation, "approve", by="bob")
            return await pending(job)

        monkeypatch.setattr(remit.service.confirmations, "pending", answered_first)
        await JobWatch(remit, [job], Recorder(), answers, patient=False).run()
        assert job.row.state == "completed"
        assert answers.withdrawn.is_set() is screen


async def test_a_job_is_read_as_it_stands(remit_in: OpenRemit) -> None:
    async with remit_in(**OPEN) as remit:
        job = await start(remit, memo())
        await JobWatch(remit, [job], Recorder(), None, patient=False).run()
        again = await followed(remit, job.job)
        assert again.steps == job.steps
        assert [step.name for step in again.steps] == ["tool.memo.write"]
