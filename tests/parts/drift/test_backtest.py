"""Recorded decisions taken again under other rules, from the record alone."""

from __future__ import annotations

from typing import Any, Final

import pytest

from remit import Options, Remit, Run, recipe, tool
from remit.errors import PolicyError
from remit.parts.drift.backtest import BacktestReport
from tests.opened import OpenRemit, until_waiting

RULES: Final[list[dict[str, Any]]] = [
    {"id": "pay-small", "effect": "allow", "tools": ["shop.pay"], "when": {"amount": {"max": 100}}},
    {"id": "no-drop", "effect": "deny", "tools": ["shop.drop"]},
]


@tool("shop.get", level="L0")
async def get(order: str) -> dict[str, Any]:
    return {"order": order, "state": "open"}


@tool("shop.pay", level="L1")
async def pay(amount: int, to: str = "") -> int:
    return amount


@tool("shop.drop", level="L2", unprotected=True)
async def drop(table: str) -> str:
    return table


@recipe("shopping", version="1")
async def shopping(run: Run, amounts: list[int]) -> int:
    await run.call(get, "o1")
    for amount in amounts:
        await run.attempt("shop.pay", {"amount": amount})
    await run.attempt("shop.drop", {"table": "orders"})
    await run.attempt("shop.nothing", {})
    return len(amounts)


async def recorded(remit_in: OpenRemit, amounts: tuple[int, ...] = (10, 500)) -> None:
    """Allowed, asked and approved, denied, and unknown."""
    async with opened(remit_in) as remit:
        job = await remit.start(shopping(list(amounts)))
        for amount in amounts:
            if amount > 100:
                await until_waiting(remit, job.id)
                (question,) = await remit.service.confirmations.pending()
                await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        await job


def opened(remit_in: OpenRemit, rules: list[dict[str, Any]] = RULES, **given: Any) -> Remit:
    return remit_in(tools=[get, pay, drop], recipes=[shopping], flags={"policy.rules": rules}, **given)


async def backtest(remit_in: OpenRemit, rules: list[dict[str, Any]], **given: Any) -> BacktestReport:
    """Without tools and recipes: what is recorded is enough."""
    async with remit_in(work=False) as remit:
        found: BacktestReport = await remit.service.drift.backtest(rules, **given)
        return found


def told(report: BacktestReport) -> list[str]:
    """Each change, once for every call."""
    return [
        f"{one.direction} {one.recorded}→{one.now} {one.tool.removeprefix('shop.')} {one.rule}"
        for one in report.changes
        for _ in range(one.calls)
    ]


async def test_the_same_rules_decide_the_same(remit_in: OpenRemit) -> None:
    await recorded(remit_in)
    report = await backtest(remit_in, RULES)
    assert (report.decisions, report.same, report.changes, report.missing) == (5, 5, (), {})
    assert (report.recorded.allow, report.recorded.ask, report.recorded.deny) == (2, 1, 2)
    assert report.now == report.recorded


ALL: Final = [{"id": "all", "effect": "allow", "tools": ["*"]}]
OPEN: Final = 'seen("shop.get").state == "open"'
CASES: Final[dict[str, tuple[list[dict[str, Any]], list[str]]]] = {
    "no rules": ([], ["looser deny→ask drop default:L2", "stricter allow→ask pay default:L1"]),
    "everything": (ALL, ["looser ask→allow pay all", "looser deny→allow drop all"]),
    "more people": (
        [
            *RULES,
            {"id": "two", "effect": "ask", "tools": ["shop.pay"], "when": {"amount": {"min": 400}}, "approvals": 2},
        ],
        ["people ask→ask pay two"],
    ),
    "callers": (
        [*RULES, {"id": "closed", "effect": "deny", "tools": ["shop.*"], "callers": ["job:shopping/alice"]}],
        ["stricter allow→deny get closed", "stricter allow→deny pay closed", "stricter ask→deny pay closed"],
    ),
    "results": (
        [*RULES, {"id": "open", "effect": "deny", "tools": ["shop.pay"], "where": OPEN}],
        ["stricter allow→deny pay open", "stricter ask→deny pay open"],
    ),
    "limits": (
        [*RULES, {"id": "once", "effect": "deny", "tools": ["shop.pay"], "limit": {"per": "job", "calls": 1}}],
        ["stricter ask→deny pay once"],
    ),
    "sums": (
        [{"id": "a", "effect": "allow", "tools": ["shop.pay"], "limit": {"per": "day", "sum": "amount", "max": 509}}],
        ["looser deny→ask drop default:L2"],
    ),
    "input": (
        [*RULES, {"id": "big", "effect": "deny", "tools": ["shop.pay"], "where": "len(input.amounts) == 2"}],
        ["stricter allow→deny pay big", "stricter ask→deny pay big"],
    ),
    "time": ([*RULES, {"id": "past", "effect": "deny", "tools": ["shop.get"], "during": {"until": "2020-01-01"}}], []),
}


@pytest.mark.parametrize("case", CASES)
async def test_other_rules_change_what_they_say(remit_in: OpenRemit, case: str) -> None:
    rules, changes = CASES[case]
    await recorded(remit_in)
    report = await backtest(remit_in, rules)
    assert sorted(told(report)) == sorted(changes)
    assert report.same == report.decisions - len(changes)
    for change in report.changes:
        assert change.examples[0].job.startswith("job_")
        assert change.examples[0].reason


async def test_rules_that_a_job_brought_along_still_hold(remit_in: OpenRemit) -> None:
    async with opened(remit_in) as remit:
        bound = shopping([10])
        options = Options(policy=({"id": "never", "effect": "deny", "tools": ["shop.pay"]},))
        await (await remit.start(bound, options))
    report = await backtest(remit_in, [{"id": "all", "effect": "allow", "tools": ["*"]}])
    assert told(report) == ["looser deny→allow drop all"]
    assert report.now.deny == 2


async def test_a_remembered_approval_answers_as_it_did_and_not_after_its_end(remit_in: OpenRemit) -> None:
    async with opened(remit_in) as remit:
        job = await remit.start(shopping([500, 500]))
        await until_waiting(remit, job.id)
        (question,) = await remit.service.confirmations.pending()
        await remit.service.approvals.remember(
            question.confirmation, scope="everything", by="bob", digest=question.digest, seconds=600
        )
        await job
    report = await backtest(remit_in, RULES)
    assert (report.changes, report.recorded.ask) == ((), 1)


async def test_only_decisions_since_a_moment_count(remit_in: OpenRemit) -> None:
    await recorded(remit_in)
    report = await backtest(remit_in, [], since=2**60)
    assert (report.decisions, report.since) == (0, 2**60)


async def test_rules_that_are_wrong_are_refused(remit_in: OpenRemit) -> None:
    with pytest.raises(PolicyError):
        await backtest(remit_in, [{"effect": "burn"}])
