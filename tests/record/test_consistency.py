"""Events checked against themselves: a history that was chained anew is found, and no legal one is suspected."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from remit import Run, recipe, tool
from remit.codes import Code
from remit.jobs.plans.check import read_plan
from remit.journal.event import link, root
from tests.opened import OpenRemit, until_waiting
from tests.parts.audit.packages import export


@tool("desk.pay", level="L1", version="1")
def pay(cents: int, to: str = "ann") -> str:
    """Pay somebody."""
    return f"paid {cents} to {to}"


@recipe("buy")
async def buy(run: Run) -> Any:
    """Pay somebody, which a person has to approve."""
    return (await run.call("desk.pay", {"cents": 500})).value


async def paid(remit_in: OpenRemit) -> str:
    """A job that paid somebody after it was approved."""
    async with remit_in(tools=[pay], recipes=[buy]) as remit:
        job = await remit.start(buy())
        await until_waiting(remit, job.id)
        (question,) = await job.questions()
        await remit.service.confirmations.decide(question.confirmation, "approve")
        await job
    return job.id


def rewrite(folder: Path, kind: str, changes: Mapping[str, Any]) -> None:
    """Change the fields of an event of a kind and chain its stream anew, as anyone who has the file can."""
    with closing(apsw.Connection(str(folder / "journal.db"))) as db:
        db.set_busy_timeout(10_000)
        ((ident, stream),) = db.execute(
            "SELECT h.id, h.stream FROM heads h JOIN events e ON e.stream = h.id WHERE e.kind = ? LIMIT 1",
            (kind,),
        )
        last, found = root(stream), False
        for seq, at, name, data in [
            *db.execute("SELECT seq, at, kind, data FROM events WHERE stream = ? ORDER BY seq", (ident,))
        ]:
            payload = bytes(data)
            if name == kind and not found:
                found, payload = True, msgspec.json.encode(msgspec.json.decode(payload) | changes)
            last = link(last, seq, at, name, payload)
            db.execute("UPDATE events SET data = ?, hash = ? WHERE stream = ? AND seq = ?", (payload, last, ident, seq))
        db.execute("UPDATE heads SET hash = ? WHERE id = ?", (last, ident))


async def codes(remit_in: OpenRemit, job: str | None = None) -> tuple[str, ...]:
    async with remit_in(tools=[pay], recipes=[buy], work=False) as remit:
        return (await remit.service.streams.verify(job)).codes


FORGERIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "other arguments": ("tool_invocation_started", {"args": {"cents": 100, "to": "ann"}}),
    "other hash of them": ("tool_invocation_started", {"arguments_hash": "sha256:" + "0" * 64}),
    "another key": ("tool_invocation_started", {"idempotency_key": "0" * 64}),
    "another tool": ("tool_invocation_started", {"tool_name": "desk.look"}),
    "announced under another name": ("tool_invocation_started", {"invocation_id": "inv_other"}),
    "without its confirmation": ("tool_invocation_started", {"confirmation": "c_other"}),
    "ended for another call": ("tool_invocation_finished", {"invocation_id": "inv_other"}),
    "ended for another step": ("tool_invocation_finished", {"step": "9"}),
    "spent on another call": ("confirmation_used", {"invocation_id": "inv_other"}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_an_event_that_was_changed_and_chained_anew_is_found(
    remit_in: OpenRemit, tmp_path: Path, forgery: str
) -> None:
    job = await paid(remit_in)
    assert await codes(remit_in) == ()
    rewrite(tmp_path, *FORGERIES[forgery])
    assert Code.RECORD_CONTRADICTED.name in await codes(remit_in)
    assert Code.RECORD_CONTRADICTED.name in await codes(remit_in, job)


async def test_a_plan_that_is_not_the_one_of_its_hash_is_found(remit_in: OpenRemit, tmp_path: Path) -> None:
    plan = {"version": "taskgraph-v1", "name": "p", "nodes": [{"id": "a", "wait": {"signal": "go"}}]}
    async with remit_in(work=False) as remit:
        job = await remit.start_plan(read_plan(plan))
        assert (await remit.service.streams.verify(job.id)).codes == ()
    rewrite(tmp_path, "plan_generated", {"task_graph": {**plan, "name": "q"}})
    assert Code.RECORD_CONTRADICTED.name in await codes(remit_in)


async def test_an_approval_that_another_session_spends_is_no_contradiction(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[pay]) as remit:
        service, args = remit.service, {"cents": 500, "to": "ann"}
        first = await service.sessions.open("mcp", principal="ann")
        await service.sessions.call(first, "desk.pay", args)
        (question,) = await service.confirmations.pending()
        await service.confirmations.decide(question.confirmation, "approve")
        second = await service.sessions.open("mcp", principal="ann")
        assert (await service.sessions.call(second, "desk.pay", args)).status == "ok"
        assert (await service.streams.verify(first)).codes == ()
        assert (await service.streams.verify()).codes == ()


async def test_forks_fit_the_events_that_they_share(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await paid(remit_in)
    async with remit_in(tools=[pay], recipes=[buy]) as remit:
        plain = await remit.service.forks.make(job, "1", repeat=True)
        await until_waiting(remit, plain.job)
        given = await remit.service.forks.make(job, results={"1": "paid nothing"}, repeat=True)
        assert await remit.job(given.job) == "paid nothing"
        assert (await remit.service.streams.verify()).problems == ()
    for forked, name in ((given.job, "given.zip"), (plain.job, "plain.zip")):
        verdict = await export(remit_in, forked, tmp_path / name)
        assert (verdict.problem, verdict.streams >= 3) == ("", True)
    rewrite(tmp_path, "job_forked", {"hash": "0" * 64})
    assert Code.RECORD_CONTRADICTED.name in await codes(remit_in)
