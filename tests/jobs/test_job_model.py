"""Jobs that are signalled, decided on, cancelled, left by their workers and taken up again, in any order.

The model knows what each job waits for and what has been left for it; that says in which state it must be found.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from remit import CallContext, Code, Remit, Run, recipe, tool
from remit.errors import NotFoundError, StateError
from remit.record.views import JobRow
from remit.settings import load
from remit.tools.function import FunctionTool
from tests.opened import until

pytestmark = pytest.mark.slow
T = TypeVar("T")
NUMBER = st.integers(0, 2)
STEPS = ("one", "approval", "doubt", "two", "question")
"""What a job waits for, in this order: two signals, the approval of a call, the outcome of another call, and a question
of its own."""
TOOLS = {"approval": "bank.charge", "doubt": "post.send"}
Decision = Literal["done", "retry", "fail"]
DECISIONS: tuple[Decision, ...] = ("done", "retry", "retry", "fail")


class Expected(msgspec.Struct):
    """A job as it should be."""

    left: list[str]
    doubted: str
    """The step whose end nobody sees."""
    signals: list[tuple[str, int]] = msgspec.field(default_factory=list)
    """Sent and not used yet."""
    heard: list[Any] = msgspec.field(default_factory=list)
    state: str = "pending"
    cancelled: bool = False
    answered: bool | None = None
    """The answer to what it asked last, not used yet."""
    attempts: int = 0
    """How often the call was made that nobody sees the end of."""
    decided: Decision | None = None
    """What a person said came of its newest attempt, not used yet."""

    @property
    def in_doubt(self) -> bool:
        """Whether somebody has to say the outcome of a call."""
        return self.state == "waiting" and self.left[0] == "doubt" and self.decided is None

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in {"completed", "failed", "cancelled"}

    def work(self) -> None:
        """What a worker makes of what was left."""
        while not self.ended:
            if self.cancelled:
                self.state = "cancelled"
            elif not self.left:
                self.state = "completed"
            elif not self._step(self.left[0]):
                self.state = "waiting"
                return

    def _step(self, wants: str) -> bool:
        if wants in {"one", "two"}:
            found = next((signal for signal in self.signals if signal[0] == wants), None)
            if found is None:
                return False
            self.signals.remove(found)
            self.heard.append(found[1])
        elif wants == "doubt":
            return self._doubt()
        elif self.answered is None:
            return False
        elif wants == "approval" and not self.answered:
            self.state = "failed"
        else:
            self.heard.append("charged" if wants == "approval" else self.answered)
        self.answered = None if wants in {"approval", "question"} else self.answered
        self.left.pop(0)
        return True

    def _doubt(self) -> bool:
        said, self.decided = self.decided, None
        if self.attempts == 0 or said == "retry":
            self.attempts += 1
            return False
        if said == "done":
            self.heard.append("sent")
            self.left.pop(0)
        elif said == "fail":
            self.state = "failed"
        return said is not None


class JobModel(RuleBasedStateMachine):
    """A few jobs, and a Remit that is opened and left again, with a worker or without."""

    @initialize(working=st.booleans())
    def begin(self, *, working: bool) -> None:
        self.stack = ExitStack()
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.runner = self.stack.enter_context(asyncio.Runner())
        self.jobs: dict[str, Expected] = {}
        self.charged: list[str] = []
        self.sent: list[str] = []
        self.count = 0

        @tool("bank.charge", level="L1")
        async def charge(ctx: CallContext) -> str:
            """Asks before it charges."""
            self.charged.append(ctx.idempotency_key)
            return "charged"

        @tool("post.send", level="L1")
        async def send(ctx: CallContext) -> str:
            """Is sent, and nobody hears whether it arrived."""
            self.sent.append(ctx.idempotency_key)
            raise ConnectionError

        @recipe("long")
        async def long(run: Run, first: int) -> list[Any]:
            """Two signals, a call that is approved, another one in doubt, and a question; or only the last of them."""
            heard: list[Any] = []
            for wanted in STEPS[first:]:
                if wanted == "question":
                    heard.append((await run.confirm("Well?")).approved)
                elif wanted in TOOLS:
                    heard.append((await run.call(TOOLS[wanted])).value)
                else:
                    heard.append(await run.wait_signal(wanted))
            return heard

        self.tools: list[FunctionTool[..., Any]] = [charge, send]
        self.recipe = long
        self.run(self.open(working=working))

    def run(self, work: Awaitable[T]) -> T:
        async def main() -> T:
            return await work

        return self.runner.run(main())

    async def open(self, *, working: bool) -> None:
        flags = {
            "journal.url": str(self.folder / "journal.db"),
            "app.principal": "alice",
            "jobs.drain_seconds": 0,
            "policy.rules": [{"effect": "allow", "tools": ["post.*"]}],
        }
        found = load(env={}, cwd=self.folder, flags=flags)
        self.remit = Remit(settings=found, tools=self.tools, recipes=[self.recipe], work=working)
        await self.remit.__aenter__()
        self.working = working

    def teardown(self) -> None:
        if hasattr(self, "remit"):
            self.run(self.remit.__aexit__(None, None, None))
            self.stack.close()

    def settle(self) -> None:
        """Where there is a worker, wait until it has made of every job what it must."""
        if not self.working:
            return
        for job, model in self.jobs.items():
            model.work()
            self.run(until(self.remit, job, partial(self.settled, model)))

    def settled(self, model: Expected, row: JobRow) -> bool:
        """Whether a job is where it must be, and nobody is going to look at it."""
        if row.state != model.state or row.worker:
            return False
        woken = row.due_at is not None and row.due_at <= self.remit.runtime.journal.clock.now()
        return model.ended or (not woken and waits(row.waiting_for, model.left[0]))

    def one_of(self, number: int) -> str:
        """Any of the jobs."""
        return list(self.jobs)[number % len(self.jobs)]

    def changes(self, job: str, work: Awaitable[Any]) -> bool:
        """Do what only a job that has not ended takes; whether it was taken."""
        try:
            self.run(work)
        except (NotFoundError, StateError) as error:
            code: Any = error.code
        else:
            code = None
        assert code == (Code.JOB_FINISHED if self.jobs[job].ended else None)
        return code is None

    # --- what happens

    @rule(first=st.integers(0, STEPS.index("doubt")))
    def start(self, first: int) -> None:
        if len(self.jobs) < 3:
            job = self.run(self.remit.start(self.recipe(first))).id
            self.jobs[job] = Expected(left=list(STEPS[first:]), doubted=str(STEPS.index("doubt") - first + 1))
            self.settle()

    @precondition(lambda self: self.jobs)
    @rule(number=NUMBER, name=st.sampled_from(["one", "two"]))
    def signal(self, number: int, name: str) -> None:
        job = self.one_of(number)
        self.count += 1
        if self.changes(job, self.remit.service.jobs.signal(job, name, self.count)):
            self.jobs[job].signals.append((name, self.count))
            self.settle()

    @precondition(lambda self: self.jobs)
    @rule(number=NUMBER, yes=st.booleans())
    def decide(self, number: int, *, yes: bool) -> None:
        job = self.one_of(number)
        model = self.jobs[job]
        questions = self.run(self.remit.service.confirmations.pending(job))
        asks = model.state == "waiting" and model.left[0] in {"approval", "question"} and model.answered is None
        assert len(questions) == asks
        for question in questions:
            self.run(
                self.remit.service.confirmations.decide(question.confirmation, "approve" if yes else "deny", by="bob")
            )
            model.answered = yes
        self.settle()

    @precondition(lambda self: self.jobs)
    @rule(number=NUMBER, decisions=st.lists(st.sampled_from(DECISIONS), min_size=1, max_size=2))
    def say_what_came_of_it(self, number: int, decisions: list[Decision]) -> None:
        """One person decides, or two at once: one decision on an attempt, and it is used for no other attempt."""
        job = self.one_of(number)
        model = self.jobs[job]
        asks = model.in_doubt
        said = self.run(self.decide_at_once(job, decisions))
        waiting = {Code.STEP_NOT_FOUND, Code.STEP_NOT_WAITING, Code.STEP_DECIDED}
        refusals = {Code.JOB_FINISHED} if model.ended else waiting
        accepted = [decision for decision, code in zip(decisions, said, strict=True) if code is None]
        assert sum(code in refusals for code in said) == len(said) - asks
        assert len(accepted) == asks
        model.decided = accepted[0] if asks else model.decided
        self.settle()

    async def decide_at_once(self, job: str, decisions: list[Decision]) -> list[Code | None]:
        """Decide on the step in doubt as often as that at the same time; with which code each was refused."""
        step = self.jobs[job].doubted
        deciding = [self.remit.service.steps.decide(job, step, decision, "sent") for decision in decisions]
        return [getattr(error, "code", None) for error in await asyncio.gather(*deciding, return_exceptions=True)]

    @precondition(lambda self: self.jobs)
    @rule(number=NUMBER)
    def cancel(self, number: int) -> None:
        job = self.one_of(number)
        if self.changes(job, self.remit.service.jobs.cancel(job)):
            self.jobs[job].cancelled = True
            self.settle()

    @precondition(lambda self: self.jobs)
    @rule(number=NUMBER)
    def resume(self, number: int) -> None:
        """Waking a job for nothing changes nothing."""
        job = self.one_of(number)
        self.changes(job, self.remit.service.jobs.resume(job))
        self.settle()

    @rule(working=st.booleans())
    def reopen(self, *, working: bool) -> None:
        """The process ends where it is, and another one begins."""
        self.run(self.remit.__aexit__(None, None, None))
        self.run(self.open(working=working))
        self.settle()

    # --- what must be true

    @invariant()
    def every_job_is_where_the_model_says(self) -> None:
        for job, model in self.jobs.items():
            row = self.run(self.remit.service.jobs.row(job))
            assert row.state == model.state
            if model.state == "completed":
                assert self.run(self.remit.service.jobs.result(job)) == model.heard
            verdict = self.run(self.remit.service.jobs.replay(job)).verdict
            assert verdict == ("same" if model.state in {"completed", "failed"} else "incomplete")
            assert self.run(self.remit.service.streams.verify(job)).problems == ()
        assert (
            len(self.charged) == len(set(self.charged)) == sum("charged" in model.heard for model in self.jobs.values())
        )
        assert len(self.sent) == sum(model.attempts for model in self.jobs.values())


def waits(words: str, wanted: str) -> bool:
    """Whether a job's words for what it waits for are about this."""
    if wanted == "doubt":
        return words.startswith("a decision on step ")
    return words == f"signal {wanted}" if wanted in {"one", "two"} else words.startswith("confirmation ")


class TestJobs(JobModel.TestCase):  # type: ignore[misc, valid-type] # hypothesis makes it
    settings = settings(max_examples=10, stateful_step_count=18, deadline=None)
