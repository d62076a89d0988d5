"""Limits, earlier results and the job's input, as rules ask for them, on calls through the whole gateway."""

from __future__ import annotations

import asyncio
from typing import Any

from remit.codes import Code
from remit.gateway.outcome import Outcome
from remit.journal.kinds import GateRefused, LimitTaken, ToolInvocationStarted
from remit.policy.pots import filled
from remit.tools.meta import Level
from remit.tools.provider import CallContext, JobFacts, ToolResult
from tests.gateway.world import Scripted, World, meta, opened

TWO = {"id": "two", "effect": "allow", "limit": {"per": "day", "calls": 2}}
SUM = {"id": "sum", "effect": "deny", "limit": {"per": "job", "sum": "cents", "max": 100}}
ALLOW = {"id": "all", "effect": "allow"}
MOST = JobFacts(id="job_1", recipe="r", labels={}, encoded=b'{"most": 50}')


def desk() -> Scripted:
    """Tools of a shop."""
    orders = {"a": {"status": "pending", "total": 70}, "b": {"status": "sent", "total": 5}}

    def behave(args: dict[str, Any], _ctx: CallContext) -> ToolResult:
        return ToolResult(orders[args["order"]] if args.get("look") else "paid")

    return Scripted([meta("odd.look"), meta("odd.pay", Level.L1)], behave)


async def pay(world: World, step: int, cents: int = 40, **asked: Any) -> Outcome:
    return await world.call("odd.pay", {"cents": cents}, step=str(step), **asked)


async def test_a_rule_allows_so_many_calls_and_then_asks() -> None:
    async with opened(desk(), rules=[TWO]) as world:
        outcomes = [await pay(world, step) for step in range(3)]
        assert [one.status for one in outcomes] == ["ok", "ok", "pending"]
        assert "Rule two would allow it, but its limit" in (await world.question(outcomes[2])).request.question
        stream = next(a.stream for a in world.store.commit_of("limit_taken").appends)
        taken = [one for one in await world.recorded(stream) if isinstance(one, LimitTaken)]
        assert [(one.rule_id, one.tool_name, one.step, one.principal) for one in taken] == [
            ("two", "odd.pay", str(step), "alice") for step in range(2)
        ]
        started = [one for one in await world.recorded() if isinstance(one, ToolInvocationStarted)]
        assert [one.intent for one in taken] == [one.idempotency_key for one in started]


async def test_rules_and_tools_share_a_pot() -> None:
    pot = {"per": "day", "sum": {"odd.pay": "cents/100", "odd.look": "euros"}, "max": 1}
    rules: list[Any] = [
        {"id": "both", "effect": "allow", "limit": {"pot": "money"}},
        {"id": "beyond", "effect": "deny", "tools": ["odd.*"], "limit": {"pot": "money"}},
    ]
    rules = [*filled(rules, {"money": pot})]
    async with opened(desk(), rules=rules) as world:
        outcomes = [
            await pay(world, 1, 60),
            await world.call("odd.look", {"euros": 0.4}, step="2"),
            await pay(world, 3, 1),
        ]
        assert [one.status for one in outcomes] == ["ok", "ok", "blocked"]
        assert outcomes[2].code is Code.POLICY_DENIED
        assert "1.0 of 1 taken today" in outcomes[2].reason


async def test_what_is_taken_is_durable_before_the_call_is_announced() -> None:
    async with opened(desk(), rules=[TWO]) as world:
        await pay(world, 1)
        diary = world.store.diary
        assert diary.index("durable limit_taken") < diary.index("submitted tool_invocation_started")


async def test_an_approved_call_counts_and_a_refused_one_does_not() -> None:
    rules = [TWO, {"id": "no", "effect": "deny", "when": {"cents": {"min": 1_000}}}]
    async with opened(desk(), rules=rules) as world:
        assert (await pay(world, 1, cents=5_000)).code is Code.POLICY_DENIED
        await pay(world, 2)
        await pay(world, 3)
        pending = await pay(world, 4)
        await world.approve(pending)
        assert (await world.again(pending, "odd.pay", {"cents": 40}, step="4")).ok
        streams = {append.stream for commit in world.store.commits for append in commit.appends}
        (counted,) = [one for one in streams if one.startswith("limit/")]
        assert len(await world.recorded(counted)) == 3


async def test_a_deny_rule_stops_what_would_pass_a_sum() -> None:
    async with opened(desk(), rules=[ALLOW, SUM]) as world:
        assert [(await pay(world, step)).ok for step in range(3)] == [True, True, False]
        assert (await pay(world, 3, cents=20)).ok
        assert (await pay(world, 4, cents=1)).code is Code.POLICY_DENIED
        assert (await world.last(GateRefused)).rule_id == "sum"


async def test_of_calls_at_the_same_moment_no_two_take_the_last_one() -> None:
    async with opened(desk(), rules=[ALLOW, {**SUM, "limit": {"per": "day", "calls": 3}}]) as world:
        outcomes = await asyncio.gather(*(pay(world, step) for step in range(9)))
        assert sum(one.ok for one in outcomes) == 3
        assert {one.code for one in outcomes if not one.ok} == {Code.POLICY_DENIED}


async def test_a_rule_looks_at_what_an_earlier_call_returned() -> None:
    where = 'seen("odd.look").status == "pending" and args.cents <= seen("odd.look").total'
    rules = [{"id": "pending", "effect": "allow", "tools": ["odd.pay"], "where": where}]
    async with opened(desk(), rules=rules) as world:
        assert (await pay(world, 1)).status == "pending"  # nothing was looked at yet
        await world.call("odd.look", {"look": True, "order": "a"}, step="2")
        assert (await pay(world, 3, cents=70)).ok
        assert (await pay(world, 4, cents=71)).status == "pending"
        await world.call("odd.look", {"look": True, "order": "b"}, step="5")
        assert (await pay(world, 6, cents=1)).status == "pending"  # the newest counts
        failed = await world.call("odd.look", {"look": True, "order": "z"}, step="7")
        assert not failed.ok


async def test_a_rule_looks_at_what_the_job_was_started_with() -> None:
    rules = [{"id": "most", "effect": "allow", "tools": ["odd.pay"], "where": "args.cents <= input.most"}]
    async with opened(desk(), rules=rules) as world:
        assert (await pay(world, 1, cents=50, job=MOST)).ok
        assert (await pay(world, 2, cents=51, job=MOST)).status == "pending"
        assert (await pay(world, 3, cents=1)).status == "pending"  # no job, no input


async def test_a_deny_rule_that_cannot_be_told_asks() -> None:
    rules: list[dict[str, Any]] = [
        ALLOW,
        {"id": "sent", "effect": "deny", "tools": ["odd.pay"], "where": 'seen("odd.look").status == "sent"'},
    ]
    async with opened(desk(), rules=rules) as world:
        pending = await pay(world, 1)
        assert (await world.question(pending)).request.rule_id == "sent"
        await world.approve(pending)
        assert (await world.again(pending, "odd.pay", {"cents": 40}, step="1")).ok
        await world.call("odd.look", {"look": True, "order": "b"}, step="2")
        assert (await pay(world, 3)).code is Code.POLICY_DENIED
