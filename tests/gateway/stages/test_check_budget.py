"""CheckBudget: what a tool, a job and a call may use."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from remit.codes import Code
from remit.gateway.model_request import DayLimits, ModelAttempt, ModelRequest
from remit.gateway.outcome import Outcome
from remit.gateway.stages.check_budget import Reserve
from remit.journal.kinds import GateRefused
from remit.models.names import ModelName
from remit.models.reply import unwatched
from remit.models.thread import EMPTY
from remit.tools.budget import ToolBudget
from remit.tools.meta import Level
from remit.tools.provider import ToolResult
from remit_testing.clock import ManualClock
from tests.gateway.samples import ALLOW, add, write
from tests.gateway.world import World, odd, opened

SUM = {"a": 1, "b": 2}


def tool(**changes: Any) -> Any:
    return odd(lambda _args, _ctx: ToolResult("ran"), **changes)


async def calls(world: World, count: int, name: str = "odd.tool", start: int = 1, **asked: Any) -> list[Outcome]:
    return [await world.call(name, step=f"{name}-{number}", **asked) for number in range(start, start + count)]


async def test_a_tool_may_be_called_so_often_in_one_stream() -> None:
    async with opened(tool(budget={"max_calls": 2})) as world:
        outcomes = await calls(world, 3)
        assert [outcome.ok for outcome in outcomes] == [True, True, False]
        assert (outcomes[2].status, outcomes[2].code) == ("blocked", Code.BUDGET_EXCEEDED)
        assert "odd.tool was called 2 times" in outcomes[2].reason
        refused = await world.last(GateRefused)
        assert (refused.stage, refused.code) == ("check_budget", "BUDGET_EXCEEDED")


async def test_each_stream_has_its_own() -> None:
    async with opened(tool(budget={"max_calls": 1})) as world:
        assert (await calls(world, 1))[0].ok
        world.writer = world.journal.writer("session/ses_06000000000000000000000001", "session")
        assert (await calls(world, 1))[0].ok


async def test_another_process_that_goes_on_with_the_stream_has_what_was_left() -> None:
    async with opened(tool(budget={"max_calls": 3}), add) as world:
        await calls(world, 2)
        assert (await world.call("math.add", SUM, step="s", leaves=True)).ok
        head = await world.journal.head(world.stream)
        world.writer = world.journal.writer(world.stream, "session", head)
        assert [outcome.ok for outcome in await calls(world, 2, start=3)] == [True, False]


async def test_the_steps_of_a_request_are_those_of_every_tool() -> None:
    budget = ToolBudget(max_steps=2)
    async with opened(tool(), add) as world:
        assert (await world.call("math.add", SUM)).ok, "counted, though it has no budget of its own"
        outcomes = await calls(world, 2, budget=budget)
        assert [outcome.ok for outcome in outcomes] == [True, False]
        assert "2 calls were made; the budget allows 2" in outcomes[1].reason
        assert (await world.call("math.add", SUM, step="free")).ok


async def test_a_request_may_only_make_the_budget_of_a_tool_smaller() -> None:
    async with opened(tool(budget={"max_calls": 1})) as world:
        outcomes = await calls(world, 2, budget=ToolBudget(max_calls=100))
        assert [outcome.ok for outcome in outcomes] == [True, False]


async def test_another_attempt_is_no_call_of_its_own() -> None:
    async with opened(tool(budget={"max_calls": 1})) as world:
        assert (await world.call()).ok
        assert (await world.call(attempt=2)).ok


async def test_a_call_that_waits_for_a_person_or_is_refused_uses_nothing_up() -> None:
    async with opened(tool(level=Level.L1, budget={"max_calls": 1})) as world:
        for _ in range(3):
            assert (await world.call()).status == "pending"
        pending = await world.call()
        await world.approve(pending)
        assert (await world.again(pending, "odd.tool")).ok
        assert (await world.call(step="2")).code is Code.BUDGET_EXCEEDED


async def test_of_many_calls_at_once_no_more_than_may_are_made() -> None:
    ran = []

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        ran.append(1)
        await asyncio.sleep(0)  # noqa: TID251 - gives the others a turn
        return ToolResult(None)

    async with opened(odd(behave, Level.L1, budget={"max_calls": 3}), rules=[ALLOW]) as world:
        outcomes = await asyncio.gather(*(world.call(step=str(number)) for number in range(20)))
        assert sum(outcome.ok for outcome in outcomes) == len(ran) == 3


@pytest.mark.parametrize("where", ["tool", "request"])
async def test_the_time_of_a_budget_ends_a_call_while_it_runs(where: str) -> None:
    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    said: dict[str, Any] = {"budget": {"max_wall_ms": 20}} if where == "tool" else {}
    asked: dict[str, Any] = {} if where == "tool" else {"budget": ToolBudget(max_wall_ms=20)}
    async with opened(odd(behave, **said)) as world:
        outcome = await world.call(**asked)
        assert (outcome.status, outcome.code) == ("failed", Code.TOOL_TIMEOUT)
        assert "0.02 s" in outcome.reason


async def test_nobody_is_asked_about_a_call_that_is_over_budget() -> None:
    async with opened(write) as world:
        assert (await world.call("note.write", {"text": "x"}, budget=ToolBudget(max_steps=1))).status == "pending"
        await world.call("note.write", {"text": "x"}, step="2", budget=ToolBudget(max_steps=1))
        assert len(await world.confirmations.pending()) == 2
        world.under([ALLOW])
        assert (await world.call("note.write", {"text": "x"}, step="3", budget=ToolBudget(max_steps=1))).ok
        world.under([])
        refused = await world.call("note.write", {"text": "x"}, step="4", budget=ToolBudget(max_steps=1))
        assert refused.code is Code.BUDGET_EXCEEDED
        assert len(await world.confirmations.pending()) == 2


@pytest.mark.parametrize(("invocation", "calls"), [("inv_1", 1), ("", 0)])
async def test_a_question_that_was_not_announced_leaves_nothing_reserved(invocation: str, calls: int) -> None:
    clock = ManualClock()
    allowance: Any = SimpleNamespace(
        limits=DayLimits(),
        accounts=lambda *_: (),
        claim=_nothing,
        release=lambda _claim: None,
        alarms_of=lambda _claim: [],
        beyond=lambda *_: {},
    )
    services: Any = SimpleNamespace(
        prices=SimpleNamespace(cost=lambda *_: None),
        allowance=allowance,
        confirmations=None,
        journal=SimpleNamespace(clock=clock),
    )
    request = ModelRequest(model="scripted:a", thread=EMPTY, step="1", principal="alice")
    asking: Any = ModelAttempt(request, unwatched)
    asking.model = SimpleNamespace(name=ModelName(provider="scripted", model="a"))
    asking.sending = SimpleNamespace(body=b"hello")
    call: Any = SimpleNamespace(stage="", asking=asking, invocation_id="", confirmation=None)

    async def proceed(_call: Any) -> Outcome:
        assert request.spent.calls == 1
        call.invocation_id = invocation
        return Outcome(status="ok")

    await Reserve(services)(call, proceed)
    assert (request.spent.calls, request.spent.tokens > 0) == (calls, calls == 1)


async def _nothing(_claim: Any) -> str:
    return ""
