"""TakeTurn: limits of the settings bound calls before they are announced."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from remit.codes import Code
from remit.errors import JournalError, ProviderError
from remit.gateway.outcome import Outcome
from remit.gateway.turns import TurnLine, TurnState
from remit.gateway.turnstiles import Turnstile
from remit.journal.kinds import GateRefused, ToolInvocationStarted
from remit.settings.sections.calls import CallLimit
from remit.tools.meta import Level
from remit.tools.provider import CallContext, JobFacts, ToolResult
from tests.gateway.samples import ALLOW
from tests.gateway.world import World, odd, opened


def fine(_args: dict[str, Any], _ctx: CallContext) -> ToolResult:
    return ToolResult(value="done")


def limits(pattern: str = "odd.*", **limit: Any) -> dict[str, CallLimit]:
    return {pattern: CallLimit(**({"wait_seconds": 0} | limit))}


async def codes(world: World, calls: int, **asked: Any) -> list[Code | None]:
    outcomes = [await world.call(step=str(number), **asked) for number in range(calls)]
    return [outcome.code for outcome in outcomes]


async def state(world: World) -> TurnState:
    (row,) = await world.journal.folds.read("limits/odd.*")
    return msgspec.json.decode(row.data, type=dict[str, TurnState])[""]


async def test_a_call_beyond_the_rate_is_refused_and_recorded() -> None:
    async with opened(odd(fine), rules=[ALLOW], calls=limits(rate="2/min")) as world:
        assert await codes(world, 2) == [None, None]
        refusal = await world.call(step="2")
        assert (refusal.status, refusal.code, refusal.again_ms) == ("blocked", Code.RATE_LIMITED, 30_000)
        assert refusal.remedy == "Try again in 30 s."
        recorded = await world.last(GateRefused)
        assert (recorded.code, recorded.stage, recorded.rule_id) == ("RATE_LIMITED", "take_turn", "writes-run")
        world.clock.advance(30)
        assert (await world.call(step="3")).ok


async def test_a_tool_that_no_pattern_names_has_no_limit() -> None:
    async with opened(odd(fine), rules=[ALLOW], calls=limits("web.*", rate="1/d")) as world:
        assert await codes(world, 3) == [None] * 3


async def test_a_call_waits_for_its_turn_and_policy_decides_again() -> None:
    async with opened(odd(fine), rules=[ALLOW], calls=limits(rate="1/min", wait_seconds=90)) as world:
        assert (await world.call(step="0")).ok
        waiting = asyncio.ensure_future(world.call(step="1"))
        await world.clock.until_asleep()
        assert len([one for one in await world.recorded() if isinstance(one, ToolInvocationStarted)]) == 1
        world.clock.advance(60)
        assert (await waiting).ok
        started = await world.last(ToolInvocationStarted)
        assert (started.step, started.rule_id) == ("1", "writes-run")


async def test_as_many_calls_as_there_are_places_are_under_way() -> None:
    entered, open_ = [0], asyncio.Event()

    async def slow(_args: dict[str, Any], _ctx: CallContext) -> ToolResult:
        entered[0] += 1
        await open_.wait()
        entered[0] -= 1
        return ToolResult(value="done")

    async with opened(odd(slow), rules=[ALLOW], calls=limits(concurrency=2)) as world:
        calls = [asyncio.ensure_future(world.call(step=str(number))) for number in range(4)]
        early, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        refused = [each.result() for each in early]
        assert {outcome.code for outcome in refused} == {Code.CONCURRENCY_LIMITED}
        open_.set()
        outcomes = await asyncio.gather(*calls)
        assert [outcome.ok for outcome in outcomes].count(True) == 2
        assert not (await state(world)).places
        assert (await world.call(step="5")).ok


async def test_a_call_that_is_cancelled_gives_its_place_back() -> None:
    entered = asyncio.Event()

    async def stuck(_args: dict[str, Any], _ctx: CallContext) -> ToolResult:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with opened(odd(stuck), rules=[ALLOW], calls=limits(concurrency=1)) as world:
        call = asyncio.ensure_future(world.call())
        await entered.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not (await state(world)).places


async def test_a_tool_that_cannot_be_reached_is_left_alone_and_tried_again() -> None:
    broken = [True]

    def shaky(_args: dict[str, Any], _ctx: CallContext) -> ToolResult:
        if broken[0]:
            raise ProviderError("gone", cause=Code.ProviderClosed)
        return ToolResult(value="done")

    async with opened(odd(shaky), rules=[ALLOW], calls=limits(breaker=2, breaker_seconds=5)) as world:
        assert await codes(world, 3) == [Code.TOOL_UNAVAILABLE, Code.TOOL_UNAVAILABLE, Code.CIRCUIT_OPEN]
        broken[0] = False
        world.clock.advance(5)
        assert await codes(world, 3) == [None] * 3


async def test_what_a_tool_reports_opens_no_circuit() -> None:
    def refuses(_args: dict[str, Any], _ctx: CallContext) -> ToolResult:
        raise ProviderError("no such page", cause=Code.http_403)

    async with opened(odd(refuses), rules=[ALLOW], calls=limits(breaker=1)) as world:
        assert await codes(world, 3) == [Code.TOOL_EXEC_FAILED] * 3


@pytest.mark.parametrize(
    ("each", "others"),
    [
        ("principal", {"principal": "bob"}),
        ("recipe", {"recipe": "nightly"}),
        ("label:team", {"job": JobFacts(id="job_1", recipe="r", labels={"team": "red"}, encoded=b"{}")}),
    ],
)
async def test_each_has_a_quota_of_its_own(each: str, others: dict[str, Any]) -> None:
    async with opened(odd(fine), rules=[ALLOW], calls=limits(rate="2/d", each=each)) as world:
        assert await codes(world, 3) == [None, None, Code.RATE_LIMITED]
        assert await codes(world, 3, **others) == [None, None, Code.RATE_LIMITED]


async def test_a_call_that_is_refused_afterwards_does_not_count() -> None:
    wanted = limits(rate="1/d") | limits("*", rate="1/d")
    async with opened(odd(fine), odd(fine, name="own.tool", provider_id="own"), rules=[ALLOW], calls=wanted) as world:
        assert (await world.call("own.tool")).ok
        assert await codes(world, 2) == [Code.RATE_LIMITED] * 2
        assert (await state(world)).full_at <= world.clock.now()


async def test_calls_that_ask_a_person_take_their_turn_once_they_run() -> None:
    async with opened(odd(fine, level=Level.L1), calls=limits(rate="1/min")) as world:
        pending = [await world.call(step=str(number)) for number in range(2)]
        assert {outcome.code for outcome in pending} == {Code.CONFIRMATION_REQUIRED}
        for outcome in pending:
            await world.approve(outcome)
        assert (await world.again(pending[0], "odd.tool", step="0")).ok
        assert (await world.again(pending[1], "odd.tool", step="1")).code is Code.RATE_LIMITED
        world.clock.advance(60)
        assert (await world.again(pending[1], "odd.tool", step="1")).ok  # it is still approved


async def test_a_caller_in_line_is_told_its_turn_and_nothing_is_recorded() -> None:
    async with opened(odd(fine, level=Level.L1), calls=limits(rate="1/min")) as world:
        pending = [await world.call(step=str(number), line=TurnLine()) for number in range(4)]
        for outcome in pending:
            await world.approve(outcome)
        assert (await world.again(pending[0], "odd.tool", step="0", line=TurnLine())).ok
        refused = [await world.again(pending[n], "odd.tool", step=str(n), line=TurnLine()) for n in (1, 2)]
        refused.append(await world.again(pending[3], "odd.tool", step="3", line=TurnLine(priority=1)))
        assert [(one.code, one.again, one.again_ms) for one in refused] == [
            (Code.RATE_LIMITED, "", 60_000),
            (Code.RATE_LIMITED, "", 120_000),
            (Code.RATE_LIMITED, "", 60_000),  # those of higher priority stand before it, and there are none
        ]
        assert not [one for one in await world.recorded() if isinstance(one, GateRefused)]
        world.clock.advance(60)
        assert (await world.question(pending[1])).state == "approved"
        assert (await world.again(pending[1], "odd.tool", step="1", line=TurnLine(place=refused[0].turn_at))).ok


async def test_a_journal_that_cannot_say_whose_turn_it_is_fails_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreadable(_self: Turnstile) -> Outcome:
        raise JournalError("gone", code=Code.JOURNAL_IO)

    monkeypatch.setattr(Turnstile, "_read", unreadable)
    async with opened(odd(fine), rules=[ALLOW], calls=limits(rate="1/d")) as world:
        with pytest.raises(JournalError):
            await world.call()
