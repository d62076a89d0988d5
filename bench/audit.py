"""What a question about a journal of a million events costs, with the index over it and while that is made."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bench.floors import decoded
from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit.canonical import digest
from remit.clock import SystemClock
from remit.journal import kinds as k
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit.parts.audit.answers import AuditQuestion, answer
from remit.parts.audit.index import AuditIndex

JOBS, CALLS, ROUNDS = 20_000, 24, 3
_SUM: Final = """
SELECT data ->> '$.tool_name', data ->> '$.tool_version', data ->> '$.principal', count(*) FROM events
WHERE kind = 'tool_invocation_started' GROUP BY 1, 2, 3
"""


async def questions(lab: Lab) -> list[Result]:
    """A question beside a sum in SQL over the events; and making the index beside decoding the events alone."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        path = str(Path(own) / "audit.db")
        await _filled(path)
        begun = await against(
            "index over a million events",
            "ms",
            lambda: _made(path),
            lambda: decoded(path, _events(), lambda watch: watch.millis(1)),
            "floor: read and decode the same events",
            mark=Mark(2.5, "floor"),
            rounds=1,
        )
        answered = await against(
            "question about a million events",
            "ms",
            lambda: _asked(path),
            lambda: _sql(path),
            "floor: a sum in SQL over the events",
            mark=Mark(1_000),
            rounds=ROUNDS,
        )
    return [*answered, *begun]


def _events() -> int:
    return JOBS * (2 * CALLS + 2)


async def _filled(path: str) -> None:
    """A journal of jobs with calls, of which some were refused and some approved."""
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    try:
        for job in range(JOBS):
            writer = journal.writer(f"job/job_{job}", "job")
            created = k.JobCreated(kind="recipe", name="shopping", principal=_who(job), execution_version="1+a")
            events = [event for call in range(CALLS) for event in _called(job, call)]
            patch = HeadPatch(state="completed", closed=True)
            await journal.append(writer, created, *events, k.JobCompleted(), synced=False, patch=patch)
    finally:
        await journal.close()


def _who(job: int) -> str:
    return ("ada", "bob", "eve")[job % 3]


def _called(job: int, call: int) -> tuple[k.Payload, k.Payload]:
    args, name, step = {"amount": job, "to": f"{job}-{call}"}, f"inv_{job}_{call}", str(call + 1)
    if not (job % 10 or call):
        refused = k.GateRefused(
            step=step, tool_name="shop.pay", code="POLICY_DENIED", principal=_who(job), rule_id="no"
        )
        decided = k.ConfirmationDecided(confirmation=name, decision="approve", by="mia", digest=digest(args))
        return refused, decided
    started = k.ToolInvocationStarted(
        invocation_id=name,
        step=step,
        tool_name=f"shop.tool_{call % 8}",
        arguments_hash=digest(args),
        idempotency_key=name,
        tool_version="1",
        request_schema_hash="sha256:" + "0" * 64,
        args=msgspec.Raw(msgspec.json.encode(args)),
        capability_level=1,
        risk_level="write",
        provider_id="local",
        side_effect="write",
        principal=_who(job),
        rule_id="small",
        policy_hash="sha256:" + "1" * 64,
        policy_kept=True,
    )
    return started, k.ToolInvocationFinished(invocation_id=name, step=step, outcome="success")


async def _made(path: str) -> Reading:
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    try:
        watch = Watch()
        sums = await AuditIndex(journal).sums_again(0, None, _events())
        taken = watch.millis(1)
    finally:
        await journal.close()
    assert sum(sums.counts.kinds.values()) == _events()
    return taken


async def _asked(path: str) -> Reading:
    """Milliseconds of a question in a process that has not looked before."""
    clock = SystemClock()
    journal = Journal(SqliteStore(path, clock), clock)
    try:
        watch = Watch()
        answer_rows = await answer(journal, AuditQuestion(principal="ada"))
        taken = watch.millis(1)
    finally:
        await journal.close()
    assert answer_rows.events == _events()
    return taken


async def _sql(path: str) -> Reading:
    with sqlite3.connect(path) as db:
        watch = Watch()
        assert db.execute(_SUM).fetchall()
        return watch.millis(1)
