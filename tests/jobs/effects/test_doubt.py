"""Who may make a call again that may have happened, and whose word counts on whether it has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest

from remit import CallContext, Code, Retry, Run, ToolMeta, ToolResult, recipe, tool
from remit.clock import SystemClock
from remit.errors import NotFoundError, ProviderError, StateError, UsageError
from remit.tools.meta import Level, Risk
from tests.jobs.ledger import Ledger
from tests.jumping import JumpingClock
from tests.opened import OpenRemit, until, until_waiting

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0}
HOUR_S = 3_600


class Unheard(Ledger):
    """Its first booking is made and not heard of; it may take a while to say what it knows."""

    def __init__(self, known: ToolResult | None) -> None:
        super().__init__(known)
        self.booked = 0
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self.booked += 1
        if self.booked == 1:
            raise ProviderError("the line broke", cause=Code.ConnectionError)
        return ToolResult("booked again")

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:
        self.asked.set()
        await self.answers.wait()
        return await super().reconcile(name, args, ctx)


@recipe("book")
async def book(run: Run) -> list[Any]:
    """One booking, and a while to look at it."""
    outcome = await run.attempt("ledger.book")
    await run.wait_signal("go")
    return [outcome.status, outcome.value]


@pytest.mark.parametrize("decision", ["done", "fail"])
@pytest.mark.parametrize("moment", ["before the provider is asked", "while it is asked"])
async def test_what_a_person_said_counts_whatever_the_provider_says_afterwards(
    remit_in: OpenRemit, decision: Literal["done", "fail"], moment: str
) -> None:
    ledger = Unheard(known=None)
    given: dict[str, Any] = {"providers": [ledger], "recipes": [book], "flags": ALLOW}
    async with remit_in(**given) as remit:
        job = (await remit.start(book())).id
        await until_waiting(remit, job)
        if moment == "while it is asked":
            ledger.answers.clear()
            await remit.service.jobs.resume(job)
            await ledger.asked.wait()
        await remit.service.steps.decide(job, "1", decision, "booked", by="ann")
        ledger.answers.set()
        await until(remit, job, lambda row: row.waiting_for == "signal go")
        await remit.job(job).signal("go")
        assert await remit.job(job) == (["ok", "booked"] if decision == "done" else ["failed", None])
        assert (await remit.service.jobs.replay(job)).verdict == "same"
    assert ledger.booked == 1


async def test_nobody_is_asked_any_more_what_the_provider_has_told(remit_in: OpenRemit) -> None:
    ledger = Unheard(known=ToolResult("it was booked"))
    async with remit_in(providers=[ledger], recipes=[book], flags=ALLOW) as remit:
        job = (await remit.start(book())).id
        await until_waiting(remit, job)
        await remit.service.jobs.resume(job)
        await until(remit, job, lambda row: row.waiting_for == "signal go")
        view = await remit.service.jobs.view(job)
        assert [(wait.step, wait.key) for wait in view.waits] == [("2", "go")]
        assert [(step.step, step.state) for step in view.steps] == [("1", "ok"), ("2", "waiting")]
        with pytest.raises(StateError):
            await remit.service.steps.decide(job, "1", "fail")


# --- who repeats


@recipe("send")
async def send(run: Run) -> str:
    """One letter."""
    return (await run.attempt("mail.send")).status


class Mail:
    """One of two providers of the same tool; it may take a letter and vanish."""

    def __init__(self, provider_id: str, sent: list[str], *, vanishes: bool = False) -> None:
        self.provider_id = provider_id
        self._sent = sent
        self._vanishes = vanishes
        self._gone = False
        self._changed: Callable[[], None] = lambda: None

    async def list_tools(self) -> Sequence[ToolMeta]:
        if self._gone:
            raise ProviderError("it is gone", cause=Code.ConnectionError)
        return [
            ToolMeta(
                name="mail.send",
                provider_id=self.provider_id,
                input_schema={"type": "object"},
                capability_level=Level.L1,
                risk_level=Risk.WRITE,
                idempotent=True,
                retry=Retry(attempts=3, first_delay_ms=1),
            )
        ]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._sent.append(self.provider_id)
        if self._vanishes:
            self._gone = True
            self._changed()
            raise ProviderError("the line broke", cause=Code.ConnectionError)
        return ToolResult("sent")

    def watch(self, changed: Callable[[], None]) -> None:
        """Whom to tell that the tools changed."""
        self._changed = changed

    async def close(self) -> None:
        """Nothing to close."""


async def test_a_call_that_may_have_happened_is_repeated_by_nobody_else(remit_in: OpenRemit) -> None:
    sent: list[str] = []
    rivals = [Mail("aaa", sent, vanishes=True), Mail("zzz", sent)]
    async with remit_in(providers=rivals, recipes=[send], flags=ALLOW) as remit:
        job = (await remit.start(send())).id
        await until(remit, job, lambda row: row.waiting_for == "a decision on step 1")
        assert sent == ["aaa"]
        assert [wait.attempt for wait in (await remit.service.jobs.view(job)).waits] == [1]
        # A person who knows that it was not sent may let the other one send it.
        await remit.service.steps.decide(job, "1", "retry", attempt=1)
        assert await remit.job(job) == "ok"
    assert sent == ["aaa", "zzz"]


async def test_what_a_person_said_counts_also_when_the_tool_is_back(remit_in: OpenRemit) -> None:
    sent: list[str] = []
    async with remit_in(providers=[Mail("aaa", sent, vanishes=True)], recipes=[send], flags=ALLOW) as remit:
        job = (await remit.start(send())).id
        await until(remit, job, lambda row: row.waiting_for == "a decision on step 1")
    async with remit_in(recipes=[send], flags=ALLOW, work=False) as remit:
        await remit.service.steps.decide(job, "1", "done", "sent")
    async with remit_in(providers=[Mail("aaa", sent)], recipes=[send], flags=ALLOW) as remit:
        assert await remit.job(job) == "ok"
    assert sent == ["aaa"]


def bank(charged: list[str], reached: asyncio.Event, *, idempotent: bool) -> Any:
    """A tool that stands still the first time."""

    @tool("mail.send", level="L1", idempotent=idempotent)
    async def charge() -> str:
        charged.append("repeatable" if idempotent else "not repeatable")
        if len(charged) == 1:
            reached.set()
            await asyncio.get_running_loop().create_future()
        return "sent"

    return charge


@pytest.mark.parametrize("today", ["not repeatable any more", "gone", "refused by policy"])
async def test_nor_unasked_by_a_tool_that_must_not_or_cannot_repeat_it_any_more(
    remit_in: OpenRemit, today: str
) -> None:
    sent: list[str] = []
    reached = asyncio.Event()
    flags: dict[str, Any] = ALLOW
    async with remit_in(tools=[bank(sent, reached, idempotent=True)], recipes=[send], flags=flags) as remit:
        job = (await remit.start(send())).id
        await reached.wait()
    tools = [] if today == "gone" else [bank(sent, reached, idempotent=today == "refused by policy")]
    if today == "refused by policy":
        flags = ALLOW | {"policy.rules": [{"effect": "deny", "tools": ["mail.*"], "reason": "no letters today"}]}
    async with remit_in(tools=tools, recipes=[send], flags=flags) as remit:
        await until(remit, job, lambda row: row.waiting_for == "a decision on step 1")
        await remit.service.steps.decide(job, "1", "done", "sent")
        assert await remit.job(job) == "ok"
        assert (await remit.service.jobs.replay(job)).verdict == "same"
    assert sent == ["repeatable"]


async def test_what_the_job_takes_as_unanswered_nobody_answers_afterwards(remit_in: OpenRemit) -> None:
    @recipe("asks")
    async def asks(run: Run) -> bool:
        answer = await run.confirm("Well?", timeout=60)
        await run.wait_signal("go")
        return answer.approved

    ahead = JumpingClock(SystemClock())
    async with (
        remit_in(recipes=[asks], clock=ahead) as remit,
        remit_in(recipes=[asks], work=False) as person,
    ):
        job = (await remit.start(asks())).id
        await until_waiting(remit, job)
        (question,) = await person.service.confirmations.pending(job)
        ahead.jump(HOUR_S)
        await remit.service.jobs.resume(job)
        await until(remit, job, lambda row: row.waiting_for == "signal go")
        with pytest.raises(StateError) as late:
            await person.service.confirmations.decide(question.confirmation, "approve", by="ann")
        assert late.value.code is Code.CONFIRMATION_CLOSED
        await remit.job(job).signal("go")
        assert await remit.job(job) is False


async def test_a_result_that_the_tool_cannot_return_is_refused(remit_in: OpenRemit) -> None:
    @tool("ledger.add", level="L1")
    async def add() -> int:
        raise ProviderError("the line broke", cause=Code.ConnectionError)

    @recipe("adds")
    async def adds(run: Run) -> Any:
        return (await run.call("ledger.add")).value

    async with remit_in(tools=[add], recipes=[adds], flags=ALLOW) as remit:
        job = (await remit.start(adds())).id
        await until_waiting(remit, job)
        with pytest.raises(UsageError, match=r"this is not what ledger\.add returns"):
            await remit.service.steps.decide(job, "1", "done", "five")
        with pytest.raises(NotFoundError) as missing:
            await remit.service.steps.decide(job, "7", "done", 5)
        assert missing.value.code is Code.STEP_NOT_FOUND
        await remit.service.steps.decide(job, "1", "done", 5)
        assert await remit.job(job) == 5
