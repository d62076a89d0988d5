"""Only chained events decide (rule 14): what somebody writes into the journal's file beside them counts for nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from remit import Remit, Run, recipe, tool
from remit.errors import ChainBrokenError
from remit.jobs.state import stream_of
from tests.opened import OpenRemit, until_waiting

PAID: list[str] = []


@tool("desk.pay", level="L1")
def pay(to: str) -> str:
    """Pay somebody."""
    PAID.append(to)
    return f"paid {to}"


@recipe("buy")
async def buy(run: Run, to: str = "ann") -> str:
    """Pay somebody, which a person has to approve."""
    return str((await run.call("desk.pay", {"to": to})).value)


@recipe("look")
async def look(run: Run) -> str:
    """Do nothing."""
    return "looked"


@pytest.fixture(autouse=True)
def nobody_paid() -> None:
    """Nobody is paid yet."""
    PAID.clear()


def forge(folder: Path, *statements: str) -> None:
    """Write into the file as somebody who has it, with Remit's SQLite: another one in this process breaks its locks."""
    with closing(apsw.Connection(str(folder / "journal.db"))) as db:
        db.set_busy_timeout(10_000)
        for statement in statements:
            db.execute(statement)


async def asked(open_remit: Callable[..., Remit]) -> tuple[str, str]:
    """A job that waits for an approval, and the question."""
    async with open_remit(tools=[pay], recipes=[buy, look]) as remit:
        job = await remit.start(buy())
        await until_waiting(remit, job.id)
        (question,) = await remit.service.confirmations.pending(job.id)
    return job.id, question.confirmation


async def goes_on(open_remit: Callable[..., Remit], job: str) -> tuple[Any, tuple[str, ...]]:
    """Where the job stands after a worker had it, and what verify says."""
    async with open_remit(tools=[pay], recipes=[buy, look], work=False) as remit:
        await remit.service.jobs.resume(job)
        remit.runtime.engine.start(only={stream_of(job)})
        await remit.runtime.engine.ended(stream_of(job))
        report = await remit.service.streams.verify()
        return await remit.service.jobs.row(job), report.problems


async def test_a_head_that_says_approved_approves_nothing(remit_in: OpenRemit, tmp_path: Path) -> None:  # C32
    job, question = await asked(remit_in)
    forge(tmp_path, "UPDATE heads SET state = 'approved' WHERE kind = 'confirmation'")
    row, problems = await goes_on(remit_in, job)
    assert PAID == []
    assert row.state == "waiting"
    assert any(question in problem for problem in problems)


async def test_a_used_approval_is_not_fresh_again(remit_in: OpenRemit, tmp_path: Path) -> None:  # C33
    job, question = await asked(remit_in)
    async with remit_in(tools=[pay], recipes=[buy]) as remit:
        await remit.service.confirmations.decide(question, "approve")
        await remit.ended(job)
        forge(tmp_path, "UPDATE heads SET state = 'approved', closed = 0 WHERE kind = 'confirmation'")
        assert (await remit.service.confirmations.view(question)).state == "used"
        assert (await remit.service.streams.verify()).problems
    assert PAID == ["ann"]


async def test_an_answer_that_no_hash_covers_is_not_believed(remit_in: OpenRemit, tmp_path: Path) -> None:
    _, question = await asked(remit_in)
    data = f'{{"confirmation":"{question}","decision":"approve","by":"mallory"}}'
    forge(
        tmp_path,
        "INSERT INTO events (stream, seq, kind, at, data, hash) SELECT id, seq + 1, 'confirmation_decided', 1, "
        f"CAST('{data}' AS BLOB), zeroblob(32) FROM heads WHERE kind = 'confirmation'",
        "UPDATE heads SET seq = seq + 1, state = 'approved' WHERE kind = 'confirmation'",
    )
    async with remit_in(tools=[pay], recipes=[buy]) as remit:
        with pytest.raises(ChainBrokenError):
            await remit.service.confirmations.view(question)
        assert (await remit.service.streams.verify()).problems
    assert PAID == []


async def test_a_revoked_approval_is_not_active_again(remit_in: OpenRemit, tmp_path: Path) -> None:  # J16
    _, question = await asked(remit_in)
    async with remit_in(tools=[pay], work=False) as remit:
        remembered = remit.runtime.services.remembered
        await remit.service.tools.views()
        await remit.service.confirmations.decide(question, "approve")
        rule = await remit.service.approvals.remember(question, "everything", seconds=3_600, exact=False)
        assert rule is not None
        assert len(await remembered.active()) == 1
        await remembered.revoke(rule.id, "ann")
        forge(tmp_path, "UPDATE heads SET state = 'active', closed = 0 WHERE kind = 'approval'")
        assert await remembered.active() == []
        assert (await remit.service.streams.verify()).problems


@pytest.mark.parametrize("column", ["state = 'completed', closed = 1", "title = title"])
async def test_a_job_s_forged_state_is_found(remit_in: OpenRemit, tmp_path: Path, column: str) -> None:  # J13
    await asked(remit_in)
    forge(tmp_path, f"UPDATE heads SET {column} WHERE kind = 'job'")
    async with remit_in(work=False) as remit:
        found = (await remit.service.streams.verify()).problems
    assert bool(found) == (column != "title = title")


async def test_events_without_a_head_are_found(remit_in: OpenRemit, tmp_path: Path) -> None:  # J09
    await asked(remit_in)
    forge(tmp_path, "DELETE FROM heads WHERE kind = 'job'")
    async with remit_in(work=False) as remit:
        assert any("without a head" in one for one in (await remit.service.streams.verify()).problems)


async def test_events_behind_the_head_are_no_history_and_stop_no_other_job(
    remit_in: OpenRemit, tmp_path: Path
) -> None:  # J10, J11, J18
    job, question = await asked(remit_in)
    forge(
        tmp_path,
        "INSERT INTO events (stream, seq, kind, at, data, hash) SELECT id, seq + 1, 'job_completed', 1, "
        "CAST('{\"result\":\"paid ann\"}' AS BLOB), zeroblob(32) FROM heads WHERE kind = 'job'",
    )
    async with remit_in(tools=[pay], recipes=[buy, look]) as remit:
        await remit.service.confirmations.decide(question, "approve")
        others = [await remit.start(look()) for _ in range(3)]
        assert [await other for other in others] == ["looked"] * 3
        assert (await remit.service.jobs.row(job)).state != "completed"
        problems = (await remit.service.streams.verify()).problems
        assert any("the head says" in problem for problem in problems)
        assert remit.runtime.engine.failure is None
    assert PAID == []
