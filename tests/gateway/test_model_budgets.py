"""Budgets of models: which questions count, what is refused, and that each level is told once."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Remit, Run, recipe
from remit.app import JobEndedError
from remit.clock import DAY, SystemClock
from remit.codes import Code
from remit.errors import SettingsError
from remit.gateway.budget import Budget, Spent
from remit.gateway.model_budgets import KIND, Alarms, ModelBudget, Questioner, account_of, budgets_of
from remit.gateway.model_request import Allowance, BudgetClaim, DayLimits, ModelRequest
from remit.journal.event import HeadQuery
from remit.journal.journal import Journal
from remit.journal.kinds import BudgetReached, decode
from remit.models.message import user
from remit.models.prompt import Sampling
from remit.models.thread import thread_of
from remit.record.views import ConfirmationView
from remit.service.options import Options
from remit.settings import Settings, load
from remit.tools.provider import JobFacts
from tests.journal.storages import SqliteStorage
from tests.patience import PATIENCE_S

LONG = "x" * 4_000
"""A thousand tokens."""
NOON = 20_000 * DAY + DAY // 2
"""The 4th of October 2024."""


CALLER = Questioner("ann", "triage", {"team": "pay"})


def _request(**changes: Any) -> ModelRequest:
    job = JobFacts(id="j", recipe="triage", labels={"team": "pay"}, encoded=b"{}")
    return msgspec.structs.replace(
        ModelRequest(model="", thread=thread_of([user("?")]), step="1", principal="ann", recipe="triage", job=job),
        **changes,
    )


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, True),
        ({"models": ["openai:*"]}, True),
        ({"models": ["anthropic:*"]}, False),
        ({"recipes": ["tri*", "x"]}, True),
        ({"recipes": ["x"]}, False),
        ({"principals": ["bob"]}, False),
        ({"labels": {"team": "pay"}}, True),
        ({"labels": {"team": "web"}}, False),
    ],
)
def test_the_questions_that_a_budget_is_about(conditions: dict[str, Any], expected: bool) -> None:
    (budget,) = budgets_of(({"name": "b", "tokens": 1, **conditions},))
    assert budget.fits(CALLER, "openai:gpt") is expected


@pytest.mark.parametrize(
    ("each", "share"), [("", ""), ("principal", "ann"), ("recipe", "triage"), ("label:team", "pay"), ("label:x", "")]
)
def test_the_value_that_has_a_budget_for_itself(each: str, share: str) -> None:
    assert ModelBudget(name="b", tokens=1, each=each).share(CALLER) == share


@pytest.mark.parametrize(("per", "period", "days"), [("day", "2024-10-04", 1), ("month", "2024-10", 31)])
def test_the_period_of_an_account(per: Any, period: str, days: int) -> None:
    account = account_of(ModelBudget(name="b", tokens=1, per=per), NOON)
    assert (account.period, len(account.days), NOON // DAY in account.days) == (period, days, True)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"name": "b"}, "limits nothing"),
        ({"name": "a b", "tokens": 1}, "letters, digits"),
        ({"name": "b", "tokens": 1, "alert": [120]}, "<= 100"),
        ({"name": "b", "tokens": 1, "each": "tool"}, "principal, recipe or label:NAME"),
    ],
)
def test_a_budget_that_does_not_fit_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        budgets_of((table,))


def test_two_budgets_of_one_name_are_refused() -> None:
    with pytest.raises(SettingsError, match="two are named b"):
        budgets_of(({"name": "b", "tokens": 1}, {"name": "b", "cents": 1}))


async def _levels(journal: Journal) -> list[int]:
    heads = await journal.heads(HeadQuery(kind=KIND))
    events = [event for head in heads for event in await journal.read(head.stream)]
    payloads = [decode(event.kind, event.data) for event in events]
    return [payload.level for payload in payloads if isinstance(payload, BudgetReached)]


async def test_processes_that_reach_a_level_together_record_it_once(tmp_path: Path) -> None:
    storage, clock = SqliteStorage(tmp_path / "journal.db"), SystemClock()
    account = account_of(ModelBudget(name="b", tokens=100, alert=(50, 80, 100)), clock.now())
    async with storage.open(clock) as one, storage.open(clock) as other:
        alarms = [Alarms(one), Alarms(other), Alarms(one)]
        due = [each.due(account, Spent(tokens=tokens)) for each, tokens in zip(alarms, (85, 99, 60), strict=True)]
        await asyncio.gather(
            *(each.record([alarm], "job/j", "1") for each, alarm in zip(alarms, due, strict=True) if alarm)
        )
        assert sorted(await _levels(one)) == [50, 80]
        assert alarms[0].due(account, Spent(tokens=99)) is None
        assert Alarms(other).due(account, Spent(tokens=49)) is None


async def test_what_is_claimed_and_not_recorded_counts(tmp_path: Path) -> None:
    storage, clock = SqliteStorage(tmp_path / "journal.db"), SystemClock()
    async with storage.open(clock) as journal:
        allowance = Allowance(journal, DayLimits(), budgets_of(({"name": "b", "tokens": 100},)))
        claims = [
            BudgetClaim(principal="ann", tokens=40, cost=0.0, accounts=allowance.accounts(_request(), "m"))
            for _ in range(3)
        ]
        refusals = await asyncio.gather(*(allowance.claim(claim) for claim in claims))
        assert [bool(refusal) for refusal in refusals] == [False, False, True]
        assert refusals[2] == "budget b: 120 of 100 tokens this month with what this call may take"
        assert [alarm.levels for alarm in allowance.alarms_of(claims[2])] == [[80, 100]]


@recipe("asks")
async def asks(run: Run) -> str:
    return (await run.model("?", sampling=Sampling(max_output_tokens=1_000))).text


def _settings(folder: Path, **budget: Any) -> Settings:
    (folder / "script.yaml").write_text(f"- say: {LONG}\n")
    flags: dict[str, Any] = {
        "models.default": "scripted:script.yaml",
        "models.budgets": [{"name": "team", "tokens": 2_500, "alert": [50, 100], "each": "label:team", **budget}],
        "journal.url": str(folder / "j.db"),
    }
    return load(cwd=folder, file=None, env={}, flags=flags)


@pytest.mark.slow
async def test_a_budget_is_refused_shown_and_begun_again_with_the_sums_of_the_journal(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    async with Remit(settings=settings, recipes=[asks]) as remit:
        for _ in range(2):
            assert await (await remit.start(asks(), Options(labels={"team": "pay"}))).result() == LONG
        assert await _levels(remit.runtime.journal) == [50]
    async with Remit(settings=settings, recipes=[asks]) as remit:
        with pytest.raises(JobEndedError, match="budget team of pay: ") as refused:
            await (await remit.start(asks(), Options(labels={"team": "pay"}))).result()
        assert refused.value.code is Code.BUDGET_EXCEEDED
        assert await (await remit.start(asks(), Options(labels={"team": "web"}))).result() == LONG
        rows = await remit.service.usage.budgets()
        assert await _levels(remit.runtime.journal) == [50, 100]
        assert await remit.runtime.gateway.services.allowance.sums.differing() == []
    assert [(row.budget, row.share) for row in rows] == [("team", "pay"), ("team", "web")]
    assert rows[0].percent > 80
    assert "of 2500 tokens this month" in rows[0].words


async def _asked_about(remit: Remit) -> ConfirmationView:
    mark = 0
    while not (pending := await remit.service.confirmations.pending()):
        mark = await asyncio.wait_for(remit.runtime.journal.changed(mark), PATIENCE_S)
    (question,) = pending
    return await remit.service.confirmations.view(question.confirmation)


@pytest.mark.slow
async def test_a_person_lets_a_question_go_beyond_a_budget_that_asks(tmp_path: Path) -> None:
    async with Remit(settings=_settings(tmp_path, tokens=1_500, then="ask"), recipes=[asks]) as remit:
        assert await (await remit.start(asks())).result() == LONG
        job = await remit.start(asks())
        question = await _asked_about(remit)
        assert "Beyond budget team of : " in question.question
        assert question.rule_id == "budget:team"
        assert await _levels(remit.runtime.journal) == [50]  # of what was not asked, none is told
        await remit.service.confirmations.decide(question.confirmation, "approve", by="ann")
        assert await asyncio.wait_for(job.result(), PATIENCE_S) == LONG
        assert await _levels(remit.runtime.journal) == [50, 100]
        job = await remit.start(asks())  # one answer is for one question
        again = await _asked_about(remit)
        await remit.service.confirmations.decide(again.confirmation, "deny", by="ann")
        with pytest.raises(JobEndedError) as denied:
            await asyncio.wait_for(job.result(), PATIENCE_S)
        assert denied.value.code is Code.CONFIRMATION_DENIED
        assert (await remit.service.drift.decisions()).different == ()


@pytest.mark.slow
async def test_an_answer_to_a_rule_does_not_count_for_a_budget(tmp_path: Path) -> None:
    rule = {"id": "all", "effect": "ask", "tools": ["model.*"]}
    settings = _settings(tmp_path, tokens=500, then="ask")
    async with Remit(settings=settings, recipes=[asks], policy=[rule]) as remit:
        job = await remit.start(asks())
        questions = []
        for _ in range(2):
            questions.append(await _asked_about(remit))
            assert await _levels(remit.runtime.journal) == []
            await remit.service.confirmations.decide(questions[-1].confirmation, "approve", by="ann")
        assert await asyncio.wait_for(job.result(), PATIENCE_S) == LONG
    assert [(question.rule_id, "Beyond budget" in question.question) for question in questions] == [
        ("all", False),
        ("all", True),
    ]


@recipe("thrifty")
async def thrifty(run: Run) -> str:
    return (await run.model("?", sampling=Sampling(max_output_tokens=1_000), budget=Budget(tokens=10))).text


@pytest.mark.slow
async def test_no_level_is_told_of_a_question_that_another_budget_refuses(tmp_path: Path) -> None:
    async with Remit(settings=_settings(tmp_path, tokens=1_500), recipes=[thrifty]) as remit:
        with pytest.raises(JobEndedError) as refused:
            await (await remit.start(thrifty())).result()
        assert refused.value.code is Code.BUDGET_EXCEEDED
        assert await _levels(remit.runtime.journal) == []


@pytest.mark.slow
async def test_each_level_is_told_once_by_processes_that_are_killed(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(f"- say: {LONG}\n")
    deaths = 0
    for seed in range(40):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.gateway.budget_victim", str(tmp_path), str(seed)
        )
        ended = await asyncio.wait_for(process.wait(), PATIENCE_S)
        assert ended in {0, -signal.SIGKILL}
        deaths += ended != 0
        if not ended:
            break
    assert deaths > 2
    async with SqliteStorage(tmp_path / "j.db").open(SystemClock()) as journal:
        assert await _levels(journal) == [25, 50, 75, 100]
