"""What a job did is undone when it fails, is cancelled, or when its recipe says so; each step once, the last first."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import JobEndedError, Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import ProviderError
from remit.jobs.effects.effects import Effects
from remit.journal import kinds as k
from tests.jobs.effects.undo_victim import settings_in
from tests.journal.storages import SqliteStorage
from tests.opened import OpenRemit, until, until_waiting
from tests.patience import PATIENCE_S

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0}
Way = Callable[[Run], Awaitable[Any]]


class Shop:
    """Books and cancels bookings, and keeps what was done, in order."""

    def __init__(self, *, unfit: int = 0) -> None:
        """The first `unfit` cancellations fail."""
        self.done: list[str] = []
        self.unfit = unfit
        self.silent = False

        @tool("shop.book", level="L1")
        async def book(what: str) -> dict[str, str]:
            self.done.append(f"book {what}")
            if self.silent:
                raise ProviderError("the line broke", cause=Code.ConnectionError)
            return {"booking": f"b-{what}"}

        @tool("shop.cancel", level="L1")
        async def cancel(booking: str) -> str:
            if self.unfit:
                self.unfit -= 1
                raise ProviderError("too late")
            self.done.append(f"cancel {booking}")
            return booking

        @tool("shop.wait", level="L1")
        async def wait() -> None:
            self.done.append("wait")
            await asyncio.get_running_loop().create_future()

        self.tools = [book, cancel, wait]

    @property
    def undone(self) -> list[str]:
        """The bookings that were cancelled, in order."""
        return [one.removeprefix("cancel ") for one in self.done if one.startswith("cancel ")]


def by_value(value: Any) -> tuple[str, dict[str, Any]]:
    return "shop.cancel", {"booking": value["booking"]}


async def two(run: Run) -> None:
    """Two bookings; one undo is known before, one is made from the result."""
    await run.call("shop.book", {"what": "hotel"}, undo=("shop.cancel", {"booking": "b-hotel"}))
    await run.call("shop.book", {"what": "flight"}, undo=by_value)


@recipe("fails")
async def fails(run: Run) -> None:
    """Two bookings, and no third."""
    await two(run)
    raise ValueError("no car left")


@recipe("waits")
async def waits(run: Run) -> None:
    """Two bookings, and a wait."""
    await two(run)
    await run.wait_signal("go")


async def compensated(remit: Remit, job: str) -> list[tuple[str, str, str]]:
    events = [k.decode(one.kind, one.data) for one in await remit.runtime.journal.read(f"job/{job}")]
    return [(one.step, one.undo_step, one.outcome) for one in events if isinstance(one, k.StepCompensated)]


async def test_a_job_that_fails_undoes_what_it_did_the_last_step_first(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[fails], flags=ALLOW) as remit:
        job = (await remit.start(fails())).id
        with pytest.raises(JobEndedError, match=r"no car left \(undone: 2, 1\)"):
            await remit.job(job)
        assert shop.undone == ["b-flight", "b-hotel"]
        assert await compensated(remit, job) == [("2", "undo:2", "compensated"), ("1", "undo:1", "compensated")]
        assert (await remit.service.jobs.replay(job)).verdict == "same"


async def test_a_job_that_is_cancelled_undoes_what_it_did_without_its_code(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[waits], flags=ALLOW) as remit:
        job = (await remit.start(waits())).id
        await until_waiting(remit, job)
    async with remit_in(tools=shop.tools, flags=ALLOW) as remit:  # the recipe is not known here
        await remit.service.jobs.cancel(job)
        ended = await remit.ended(job)
        assert ended.state == "cancelled"
        assert shop.undone == ["b-flight", "b-hotel"]


async def test_a_job_that_completes_undoes_nothing(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[waits], flags=ALLOW) as remit:
        job = await remit.start(waits())
        await job.signal("go")
        await job
        assert shop.undone == []


@recipe("asks")
async def asks(run: Run) -> list[Any]:
    """The recipe itself undoes, and goes on."""
    await two(run)
    first = await run.compensate()
    await run.call("shop.book", {"what": "train"}, undo=by_value)
    second = await run.compensate()
    return [first.undone, second.undone, (await run.compensate()).undone]


async def test_a_recipe_undoes_when_it_wants_and_each_step_once(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[asks], flags=ALLOW, always_replay=True) as remit:
        job = await remit.start(asks())
        assert await job == [["2", "1"], ["4"], []]
        assert shop.undone == ["b-flight", "b-hotel", "b-train"]
        report = await remit.service.jobs.replay(job.id)
        assert (report.verdict, report.divergence) == ("same", None)


@recipe("undoes_and_fails")
async def undoes_and_fails(run: Run) -> None:
    """What the recipe undid is not undone again at the end."""
    await two(run)
    await run.compensate()
    await run.call("shop.book", {"what": "train"}, undo=by_value)
    raise ValueError("no car left")


async def test_what_the_recipe_undid_is_not_undone_again_when_the_job_fails(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[undoes_and_fails], flags=ALLOW) as remit:
        with pytest.raises(JobEndedError, match=r"\(undone: 4\)"):
            await remit.run(undoes_and_fails())
    assert shop.undone == ["b-flight", "b-hotel", "b-train"]


@pytest.mark.parametrize(
    ("decision", "outcomes", "state"),
    [
        ("retry", [("2", "undo:2:2", "compensated"), ("1", "undo:1", "compensated")], "undone: 2, 1"),
        ("done", [("2", "undo:2", "skipped"), ("1", "undo:1", "compensated")], "undone: 1; left as they are: 2"),
        ("fail", [("2", "undo:2", "failed"), ("1", "undo:1", "compensated")], "undone: 1; left as they are: 2"),
    ],
)
async def test_an_undo_that_fails_waits_for_a_person(
    remit_in: OpenRemit, decision: Any, outcomes: list[Any], state: str
) -> None:
    shop = Shop(unfit=1)
    async with remit_in(tools=shop.tools, recipes=[fails], flags=ALLOW) as remit:
        job = (await remit.start(fails())).id
        await until(remit, job, lambda row: row.waiting_for == "a decision on step undo:2")
        assert shop.undone == []
        await remit.service.steps.decide(job, "undo:2", decision, None, by="ann")
        with pytest.raises(JobEndedError, match=state):
            await remit.job(job)
        assert await compensated(remit, job) == outcomes


async def test_the_undo_of_a_step_whose_outcome_is_unknown_waits_for_the_decision(remit_in: OpenRemit) -> None:
    shop = Shop()
    shop.silent = True
    async with remit_in(tools=shop.tools, recipes=[fails], flags=ALLOW) as remit:
        job = (await remit.start(fails())).id
        await until(remit, job, lambda row: row.waiting_for == "a decision on step 1")
        await remit.service.jobs.cancel(job)
        await until(remit, job, lambda row: row.state == "waiting" and row.waiting_for == "a decision on step 1")
        assert shop.undone == []
        await remit.service.steps.decide(job, "1", "done", {"booking": "b-hotel"})
        assert (await remit.ended(job)).state == "cancelled"
        assert shop.undone == ["b-hotel"]


async def test_a_step_that_did_not_happen_is_not_undone(remit_in: OpenRemit) -> None:
    shop = Shop()
    shop.silent = True
    async with remit_in(tools=shop.tools, recipes=[fails], flags=ALLOW) as remit:
        job = (await remit.start(fails())).id
        await until(remit, job, lambda row: row.waiting_for == "a decision on step 1")
        await remit.service.jobs.cancel(job)
        await remit.service.steps.decide(job, "1", "retry")
        assert (await remit.ended(job)).state == "cancelled"
        assert await compensated(remit, job) == [("1", "undo:1", "skipped")]
        assert shop.undone == []


@recipe("odd")
async def odd(run: Run, undo: str) -> None:
    """An undo that is none."""
    await run.call("shop.book", {"what": "hotel"}, undo=undo)  # type: ignore[call-overload]


async def test_an_undo_that_is_not_a_call_is_refused_before_the_call(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[odd], flags=ALLOW) as remit:
        with pytest.raises(JobEndedError, match="is not an undo"):
            await remit.run(odd("cancel it"))
    assert shop.done == []


async def test_an_undo_that_a_crash_kept_from_the_record_waits_for_the_code_that_makes_it(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop()

    async def crashed(*_: Any) -> None:
        """The process died between the call's outcome and the undo that is made from it."""

    with monkeypatch.context() as patch:
        patch.setattr(Effects, "_declare", crashed)
        async with remit_in(tools=shop.tools, recipes=[waits], flags=ALLOW) as remit:
            job = (await remit.start(waits())).id
            await until_waiting(remit, job)
    async with remit_in(tools=shop.tools, flags=ALLOW) as remit:
        await remit.service.jobs.cancel(job)
        await until(remit, job, lambda row: row.state == "waiting" and row.code == "UNKNOWN_RECIPE")
        assert shop.undone == []
    async with remit_in(tools=shop.tools, recipes=[waits], flags=ALLOW) as remit:
        await remit.service.jobs.resume(job)
        assert (await remit.ended(job)).state == "cancelled"
    assert shop.undone == ["b-flight", "b-hotel"]


@recipe("hangs")
async def hangs(run: Run) -> None:
    """A booking, and a call that does not come back."""
    await run.call("shop.book", {"what": "hotel"}, undo=by_value)
    await run.call("shop.wait", undo=("shop.cancel", {"booking": "b-wait"}))


async def test_a_call_under_way_when_the_job_is_cancelled_is_decided_and_then_undone(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[hangs], flags=ALLOW) as remit:
        job = (await remit.start(hangs())).id
        await until(remit, job, lambda _row: "wait" in shop.done)
        await remit.service.jobs.cancel(job)
        await until(remit, job, lambda row: row.waiting_for == "a decision on step 2")
        assert [(wait.step, wait.attempt) for wait in (await remit.service.jobs.view(job)).waits] == [("2", 1)]
        await remit.service.steps.decide(job, "2", "done")
        assert (await remit.ended(job)).state == "cancelled"
        assert shop.undone == ["b-wait", "b-hotel"]
        steps = {step.step: (step.state, step.undone) for step in (await remit.service.jobs.view(job)).steps}
        assert steps == {
            "1": ("ok", "compensated"),
            "2": ("ok", "compensated"),
            "undo:2": ("ok", ""),
            "undo:1": ("ok", ""),
        }


class Deaf(Shop):
    """Its bookings may be repeated, and are never answered."""

    def __init__(self) -> None:
        super().__init__()

        @tool("shop.book", level="L1", idempotent=True)
        async def book(what: str) -> None:
            self.done.append(f"book {what}")
            raise ProviderError("the line broke", cause=Code.ConnectionError)

        self.tools[0] = book


@pytest.mark.parametrize(("decision", "undone"), [("retry", ["b-hotel"]), ("done", [])])
async def test_a_failure_without_an_answer_may_be_undone_as_a_person_decides(
    remit_in: OpenRemit, decision: Any, undone: list[str]
) -> None:
    shop = Deaf()
    async with remit_in(tools=shop.tools, recipes=[fails], flags=ALLOW) as remit:
        job = (await remit.start(fails())).id
        await until(remit, job, lambda row: row.waiting_for == "a decision on step undo:1")
        (wait,) = (await remit.service.jobs.view(job)).waits
        assert wait.reason == "step 1 failed and may have taken effect: undo it?"
        await remit.service.steps.decide(job, "undo:1", decision)
        with pytest.raises(JobEndedError, match="TOOL_UNAVAILABLE"):
            await remit.job(job)
    assert shop.undone == undone


async def test_a_job_that_fails_undoes_in_always_replay_mode(remit_in: OpenRemit) -> None:
    shop = Shop()
    async with remit_in(tools=shop.tools, recipes=[fails], flags=ALLOW, always_replay=True) as remit:
        with pytest.raises(JobEndedError, match=r"undone: 2, 1"):
            await remit.run(fails())
    assert shop.undone == ["b-flight", "b-hotel"]


async def test_an_undo_that_needs_approval_asks_a_person(remit_in: OpenRemit) -> None:
    shop = Shop()
    ask = {"policy.rules": [{"effect": "allow", "tools": ["shop.book"]}], "jobs.drain_seconds": 0}
    async with remit_in(tools=shop.tools, recipes=[fails], flags=ask) as remit:
        job = (await remit.start(fails())).id
        asked = []
        async for question in remit.questions(job):
            asked.append((question.step, question.tool))
            await remit.service.confirmations.decide(question.confirmation, "approve", digest=question.digest, by="ann")
        assert asked == [("undo:2", "shop.cancel"), ("undo:1", "shop.cancel")]
    assert shop.undone == ["b-flight", "b-hotel"]


async def test_a_call_that_was_undone_counts_no_more_in_its_pot(remit_in: OpenRemit) -> None:
    shop = Shop(unfit=1)
    rules: list[Any] = [{"effect": "allow", "tools": ["shop.book"], "limit": {"pot": "trips"}}]
    rules.append({"effect": "allow", "tools": ["shop.cancel"]})
    flags = {"policy.rules": rules, "policy.pots": {"trips": {"per": "month", "calls": 2}}, "jobs.drain_seconds": 0}
    async with remit_in(tools=shop.tools, recipes=[fails], flags=flags) as remit:
        job = (await remit.start(fails())).id
        await until(remit, job, lambda row: row.waiting_for == "a decision on step undo:2")
        assert [pot.calls for pot in await remit.service.policy.pots()] == [2]
        await remit.service.steps.decide(job, "undo:2", "done", None, by="ann")
        with pytest.raises(JobEndedError, match="undone: 1; left as they are: 2"):
            await remit.job(job)
        assert [pot.calls for pot in await remit.service.policy.pots()] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["limit_returned", "step_compensated"])
async def test_a_part_is_given_back_once_by_processes_that_are_killed_around_it(
    kind: str, when: str, tmp_path: Path
) -> None:
    victim = [sys.executable, "-m", "tests.jobs.effects.undo_victim", str(tmp_path)]
    killed = await asyncio.create_subprocess_exec(*victim, kind, when)
    assert await asyncio.wait_for(killed.wait(), PATIENCE_S) == -signal.SIGKILL
    async with SqliteStorage(tmp_path / "j.db").open(SystemClock()) as journal:
        returned = len((await journal.scan(0, ("limit_returned",), 10)).events)
        assert returned == (0 if (kind, when) == ("limit_returned", "before") else 1)
    last = await asyncio.create_subprocess_exec(*victim, "", "", stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(last.communicate(), PATIENCE_S)
    assert (last.returncode, b"undone: 2, 1" in out) == (0, True), out
    async with SqliteStorage(tmp_path / "j.db").open(SystemClock()) as journal:
        events = (await journal.scan(0, ("limit_returned",), 10)).events
        assert [msgspec.json.decode(placed.event.data)["step"] for placed in events] == ["2", "1"]
    async with Remit(settings=settings_in(tmp_path), work=False) as remit:
        assert [pot.calls for pot in await remit.service.policy.pots()] == [0]
