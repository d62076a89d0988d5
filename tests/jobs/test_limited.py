"""Limits as jobs meet them: refusals are recorded and derived again, and what may have happened waits for its turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.audit.package import write_package
from remit.evidence.program import sources
from remit.evidence.verify import check
from remit.jobs.answers import ModelError
from remit.journal.kinds import GateRefused, decode
from remit.testing.clock import ManualClock
from tests.jobs.bank import NOW, Crash, pay
from tests.journal.storages import PostgresStorage
from tests.opened import OpenRemit, until_waiting

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


async def test_refusals_by_limits_are_derived_again_and_replayed(remit_in: OpenRemit, url: str, tmp_path: Path) -> None:
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
