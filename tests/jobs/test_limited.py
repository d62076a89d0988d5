"""Limits as jobs meet them: each step waits for its turn, parked; what older journals hold of refusals is replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remit import Options, Remit, Run, recipe, tool
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import ProviderError
from remit.evidence.program import sources
from remit.evidence.verify import check
from remit.jobs.answers import ModelError
from remit.jobs.effects import calls
from remit.jobs.effects import live as asks
from remit.journal.kinds import GateRefused, JobWaiting, decode
from remit.parts.audit.package import write_package
from remit.record.views import JobRow
from remit_testing.clock import ManualClock
from tests.jobs.bank import NOW, Crash, pay
from tests.journal.storages import PostgresStorage
from tests.opened import OpenRemit, until, until_waiting

HOUR_S = 3_600


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'journal.db'}"
    storage: PostgresStorage = request.getfixturevalue("storage")
    return storage.url


def flags(url: str, **limits: dict[str, Any]) -> dict[str, Any]:
    tables = {pattern: {"wait_seconds": 0, **limit} for pattern, limit in limits.items()}
    return NOW | {"journal.url": url, "limits.tools": tables}


@tool("desk.look", level="L0")
async def look(what: str) -> str:
    return what


@recipe("looks")
async def looks(run: Run) -> list[str | None]:
    """Make calls of a tool and of a model; their codes."""
    outcomes = [await run.attempt("desk.look", {"what": name}) for name in "abc"]
    codes = [outcome.code.name if outcome.code else None for outcome in outcomes]
    for question in "ab":
        try:
            await run.model(question)
        except ModelError as error:
            codes.append(error.code.name)
        else:
            codes.append(None)
    return codes


@pytest.mark.slow
async def test_what_may_have_happened_waits_for_its_turn_and_is_made_again(remit_in: OpenRemit, url: str) -> None:
    bank, clock = Crash(idempotent=True), ManualClock()
    limits = {"bank.*": {"rate": "2/d"}}
    given: dict[str, Any] = {"tools": [bank.tool], "recipes": [pay], "clock": clock, "flags": flags(url, **limits)}
    async with remit_in(**given) as remit:
        job = (await remit.start(pay(5))).id
        await bank.reached.wait()
    bank.reached.clear()
    async with remit_in(**given):  # now it is the repetition that does not end
        await bank.reached.wait()
    bank.crashing = False
    async with remit_in(**given) as remit:
        row = await until_waiting(remit, job)
        assert row.due_at == clock.now() + 12 * HOUR_S * 1_000_000
        assert len(bank.calls) == 2
    async with remit_in(**given) as remit:
        clock.advance(12 * HOUR_S)
        assert await remit.job(job) == 5
        kinds = [event.kind for event in await remit.service.streams.events(f"job/{job}")]
        assert "gate_refused" not in kinds
        assert kinds.count("timer_fired") == 1
        assert (await remit.service.jobs.replay(job)).verdict == "same"
        report = await remit.service.drift.decisions()
        assert (report.same, report.different) == (report.decisions, ())
    assert len(bank.calls) == 3
    assert len(set(bank.calls)) == 1


async def test_refusals_by_limits_of_older_journals_are_derived_again_and_replayed(
    remit_in: OpenRemit, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (calls, asks):
        monkeypatch.setattr(module, "TurnLine", lambda **_line: None)  # as before jobs stood in line
    (tmp_path / "script.yaml").write_text("[{say: one}, {say: two}]")
    limits = {"desk.*": {"rate": "2/h"}, "model.scripted.*": {"rate": "1/h"}}
    given = flags(url, **limits) | {"models.default": f"scripted:{tmp_path / 'script.yaml'}"}
    async with remit_in(tools=[look], recipes=[looks], flags=given, clock=ManualClock()) as remit:
        job = await remit.start(looks())
        assert await job == [None, None, "RATE_LIMITED", None, "RATE_LIMITED"]
        events = await remit.runtime.journal.read(f"job/{job.id}")
        refusals = [one for event in events if isinstance(one := decode(event.kind, event.data), GateRefused)]
        assert [(one.stage, one.again_ms, one.model_call) for one in refusals] == [
            ("take_turn", 1_800_000, False),
            ("take_turn", HOUR_S * 1_000, True),
        ]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        report = await remit.service.drift.decisions()
        assert (report.decisions, report.same, report.different) == (3, 3, ())
        with (tmp_path / "job.zip").open("wb") as file:
            await write_package(remit.runtime.journal, f"job/{job.id}", file)
    verdict = check(str(tmp_path / "job.zip"), sources())
    assert verdict.problem == ""
    assert verdict.decisions is not None
    assert verdict.decisions.decisions == 3


@tool("desk.refund", level="L1")
async def refund(who: str) -> str:
    return f"{who} is paid"


@tool("mail.send", level="L1")
async def send(who: str) -> str:
    return f"{who} knows"


@recipe("give_back")
async def give_back(run: Run, who: str) -> str:
    await run.call("desk.refund", {"who": who})
    return str((await run.call("mail.send", {"who": who})).value)


@recipe("asks_for")
async def asks_for(run: Run, what: str) -> str:
    """Call a tool and ask a model within a child and a gather."""
    both = await run.gather(run.call("desk.look", {"what": what}), run.child(asks_model(what)))
    return str(both[1])


@recipe("asks_model")
async def asks_model(run: Run, what: str) -> str:
    return (await run.model(what)).text


async def pass_time(remit: Remit, clock: ManualClock, jobs: Sequence[str]) -> int:
    """Let time pass from one turn to the next until the jobs have ended; how often that was."""
    advances = 0
    while True:
        rows = [await until(remit, job, lambda row: row.state not in {"pending", "running"}) for job in jobs]
        dues = [row.due_at for row in rows if row.state == "waiting" and row.due_at is not None]
        if not dues:
            assert {row.state for row in rows} == {"completed"}
            return advances
        assert min(dues) > clock.now(), rows
        advances += 1
        clock.advance((min(dues) - clock.now()) / SECOND)
        await until_moved(remit, jobs, min(dues))


async def until_moved(remit: Remit, jobs: Sequence[str], due: int) -> None:
    """Wait until no job stands where it stood before its time came."""
    for job in jobs:
        await until(remit, job, lambda row: row.state != "waiting" or row.due_at is None or row.due_at > due)


async def until_due(remit: Remit, job: str, due: int) -> JobRow:
    return await until(remit, job, lambda row: row.state == "waiting" and row.due_at == due)


async def waits_of(remit: Remit, job: str) -> list[JobWaiting]:
    events = await remit.runtime.journal.read(f"job/{job}")
    return [one for event in events if isinstance(one := decode(event.kind, event.data), JobWaiting)]


async def test_jobs_wait_for_their_turn_parked_and_end_as_they_would_have(remit_in: OpenRemit, url: str) -> None:
    clock, recipes = ManualClock(), [give_back, looks_once]
    given = flags(url, **{"mail.send": {"rate": "3/min"}}) | {"jobs.concurrency": 4}
    async with remit_in(tools=[refund, send, look], recipes=recipes, flags=given, clock=clock) as remit:
        jobs = [(await remit.start(give_back(f"c{number}"))).id for number in range(8)]
        for job in jobs:
            await until(remit, job, lambda row: row.state not in {"pending", "running"})
        urgent = await remit.start(looks_once("a"), Options(priority=9))
        assert await urgent == "a"  # no time has passed: those that wait hold no worker
        assert await pass_time(remit, clock, jobs) == 5
        made = Counter[str]()
        for job in jobs:
            assert await remit.job(job) == f"c{jobs.index(job)} knows"
            made.update(event.kind for event in await remit.service.streams.events(f"job/{job}"))
            assert (await remit.service.jobs.replay(job)).verdict == "same"
        assert (made["tool_invocation_started"], made["gate_refused"], made["job_waiting"]) == (16, 0, 5)
        report = await remit.service.drift.decisions()
        assert (report.decisions, report.different) == (report.same, ())


@recipe("looks_once")
async def looks_once(run: Run, what: str) -> str:
    return str((await run.call("desk.look", {"what": what})).value)


async def test_steps_in_branches_children_and_models_wait_for_their_turn(
    remit_in: OpenRemit, url: str, tmp_path: Path
) -> None:
    (tmp_path / "script.yaml").write_text("[{say: one}, {say: two}, {say: three}]")
    given = flags(url, **{"desk.*": {"rate": "1/d"}, "model.scripted": {"rate": "1/h"}})
    given |= {"models.default": f"scripted:{tmp_path / 'script.yaml'}"}
    clock = ManualClock()
    options: dict[str, Any] = {"tools": [look], "recipes": [asks_for, asks_model], "flags": given, "clock": clock}
    async with remit_in(**options) as remit:
        jobs = [(await remit.start(asks_for(what))).id for what in "ab"]
        for job in jobs:
            await until(remit, job, lambda row: row.state not in {"pending", "running"})
    async with remit_in(**options) as remit:  # another process goes on with what is parked
        assert await pass_time(remit, clock, jobs)
        assert {await remit.job(job) for job in jobs} == {"one"}
        waits = [one for job in jobs for one in await waits_of(remit, job)]
        assert {(one.model_call, one.correlation_key) for one in waits} >= {(True, "turn:1"), (False, "turn:1")}
        assert {(await remit.service.jobs.replay(job)).verdict for job in jobs} == {"same"}


async def test_a_parked_job_is_cancelled_and_says_what_it_waits_for(remit_in: OpenRemit, url: str) -> None:
    clock = ManualClock()
    given = flags(url, **{"mail.send": {"rate": "1/d"}})
    async with remit_in(tools=[refund, send], recipes=[give_back], flags=given, clock=clock) as remit:
        assert await remit.run(give_back("c0")) == "c0 knows"
        job = await remit.start(give_back("c1"))
        row = await until_waiting(remit, job.id)
        assert (row.waiting_for, row.due_at) == (
            'its turn: mail.send: limits."mail.send" allows 1/d',
            clock.now() + 24 * HOUR_S * SECOND,
        )
        await job.cancel()
        await until(remit, job.id, lambda row: row.state == "cancelled")


async def test_a_job_that_may_ask_no_more_waits_until_it_may_and_looks_less_often_each_time(
    remit_in: OpenRemit, url: str
) -> None:
    clock, given = ManualClock(), {"journal.url": url, "confirm.max_open": 1}
    options: dict[str, Any] = {"tools": [refund], "recipes": [refunds], "flags": given, "clock": clock}
    async with remit_in(**options) as remit:
        first = await remit.start(refunds("c0"))
        await until_waiting(remit, first.id)
        second = await remit.start(refunds("c1"))
        for minutes in (1, 2, 3, 4):
            due = clock.now() + minutes * 60 * SECOND
            row = await until_due(remit, second.id, due)
            assert "confirm.max_open" in row.waiting_for
            if minutes == 4:
                (question,) = await remit.service.confirmations.pending()
                await remit.service.confirmations.decide(question.confirmation, "approve")
                assert await first == "c0 is paid"
            clock.advance(minutes * 60)
        await until(remit, second.id, lambda row: row.state == "waiting" and "turn" not in row.waiting_for)
        (question,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(question.confirmation, "approve")
        assert await second == "c1 is paid"
        kinds = [event.kind for event in await remit.service.streams.events(f"job/{second.id}")]
        assert "gate_refused" not in kinds


@recipe("refunds")
async def refunds(run: Run, who: str) -> str:
    return str((await run.call("desk.refund", {"who": who})).value)


def elsewhere(refusals: int) -> Any:
    """A tool behind another gate, whose limit refuses the first calls."""
    left = list(range(refusals))

    @tool("mail.send", level="L1")
    async def far(who: str) -> str:
        if left:
            left.pop()
            raise ProviderError("too often", code=Code.RATE_LIMITED, cause=None, effect="none", again_ms=20_000)
        return f"{who} knows"

    return far


@pytest.mark.parametrize("moved", [False, True])
async def test_a_job_waits_parked_for_its_turn_at_a_limit_beyond_the_provider(
    remit_in: OpenRemit, url: str, moved: bool
) -> None:
    clock = ManualClock()
    given = {"tools": [refund, elsewhere(4)], "recipes": [give_back], "clock": clock, "flags": flags(url)}
    async with remit_in(**given) as remit:
        job = (await remit.start(give_back("c0"))).id
        assert "too often" in (await until_waiting(remit, job)).waiting_for
        if not moved:
            assert await pass_time(remit, clock, [job]) == 4
    async with remit_in(**given) as remit:
        await pass_time(remit, clock, [job])
        assert await remit.job(job) == "c0 knows"
        made = Counter(event.kind for event in await remit.service.streams.events(f"job/{job}"))
        assert (made["tool_invocation_started"], made["timer_fired"], made["gate_refused"]) == (6, 4, 0)
        assert (await remit.service.jobs.replay(job)).verdict == "same"


@pytest.mark.slow
async def test_many_parked_jobs_do_not_all_look_at_each_turn(remit_in: OpenRemit) -> None:
    clock, number = ManualClock(), 60
    given = flags("sqlite:///:memory:", **{"mail.send": {"rate": "6/min", "burst": 1}})
    async with remit_in(tools=[refund, send], recipes=[give_back], flags=given, clock=clock) as remit:
        jobs = [(await remit.start(give_back(f"c{index}"))).id for index in range(number)]
        await pass_time(remit, clock, jobs)
        looks = [len(await waits_of(remit, job)) for job in jobs]
        assert sum(looks) <= number
