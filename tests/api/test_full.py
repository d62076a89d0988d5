"""What has no room for one more: a coded problem that says when to try again, and what ends work goes on."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from remit import Run, recipe
from remit.api.table import ROUTES
from remit.journal.sqlite.store import SqliteStore
from remit.service import health
from tests.api.conftest import Served
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

LARGE = {"name": "go", "payload": "x" * 200_000}


@recipe("listens")
async def listens(run: Run) -> None:
    """Wait for a signal."""
    await run.wait_signal("go")


async def test_a_quota_and_the_queue_say_when_to_try_again(remit_in: OpenRemit, served: Served) -> None:
    flags = {"journal.url": ":memory:", "jobs.quotas": '{"recipe": 1}'}
    async with remit_in(recipes=[listens], flags=flags) as remit, served(remit) as client:
        job = (await client.post("/v1/jobs", {"recipe": "listens"})).json["job"]
        refusal = await client.post("/v1/jobs", {"recipe": "listens"})
        assert (refusal.status, refusal.json["error_code"]) == (429, "JOB_QUOTA_EXCEEDED")
        assert refusal.json["detail"] == "recipe listens has 1 open jobs, as many as jobs.quotas allows"
        assert refusal.headers["retry-after"] == "5"
        assert (await client.post(f"/v1/jobs/{job}/signal", {"name": "go"})).status == 200


async def test_nothing_new_begins_while_too_much_waits_to_be_written(
    remit_in: OpenRemit, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = SqliteStore.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "busy_ms", int(PATIENCE_S * 1_000))
    file = tmp_path / "journal.db"
    flags = {"journal.url": f"sqlite:///{file}", "serve.queue_bytes": "100000"}
    async with remit_in(recipes=[listens], flags=flags) as remit, served(remit) as client:
        mark = 0
        while not await remit.service.workers.views():  # its own presence is on record, too
            mark = await remit.runtime.journal.changed(mark)
        job = (await client.post("/v1/jobs", {"recipe": "listens"})).json["job"]
        while (await client.get(f"/v1/jobs/{job}")).json["state"] != "waiting":
            mark = await remit.runtime.journal.changed(mark)
        with closing(apsw.Connection(str(file))) as other:
            other.set_busy_timeout(10_000)
            other.execute("BEGIN IMMEDIATE")
            signal = asyncio.create_task(client.post(f"/v1/jobs/{job}/signal", LARGE))
            while remit.runtime.journal.backlog() < 100_000:
                assert (await client.get("/health/live")).status == 200
            message = {"type": "message", "thread_id": "t1", "content": "hello"}
            for path, body in (
                ("/v1/jobs", {"recipe": "listens"}),
                ("/v1/tools/execute", {"tool_name": "fs_list"}),
                ("/events", message),
                ("/v1/triage/batch", {"events": [message]}),
            ):
                refusal = await client.post(path, body)
                assert (refusal.status, refusal.json["error_code"]) == (503, "JOURNAL_BUSY")
                assert refusal.headers["retry-after"] == "1"
                assert refusal.json["remedy"].startswith("Try again")
            ready = await client.get("/health")
            assert (ready.status, ready.json["error_code"]) == (503, "JOURNAL_BUSY")
            counters = (await client.get("/metrics")).body.decode()
            assert "journal_backlog_bytes 2" in counters
            assert "queue_depth" not in counters
            assert not signal.done()
            other.execute("ROLLBACK")
        assert (await signal).status == 200
        await remit.job(job)
        assert (await client.post("/v1/jobs", {"recipe": "listens"})).status == 201


def test_only_what_begins_jobs_calls_or_tickets_is_refused() -> None:
    refused = {route.name for route in ROUTES if route.begins}
    assert refused >= {"jobs.start", "tools.execute", "events.take", "tickets.batch", "tickets.retry", "work.start"}
    assert refused.isdisjoint({"jobs.signal", "tickets.fill", "work.result", "work.submit", "work.write", "jobs.page"})


async def test_counters_are_told_while_the_journal_does_not_answer(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(flags={"journal.url": ":memory:"}) as remit:
        monkeypatch.setattr(health, "_GAUGES_S", 0.01)
        monkeypatch.setattr(remit.runtime.journal, "counts", lambda _kind: asyncio.Event().wait())
        names = {family.name for family in await remit.service.health.metrics()}
    assert "journal_backlog_bytes" in names
    assert "queue_depth" not in names
