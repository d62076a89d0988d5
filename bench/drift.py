"""What it takes to compare a journal of many calls with today, and to try other rules on it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.floors import decoded
from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit import Remit, tool
from remit.canonical import canonical, digest
from remit.clock import SystemClock
from remit.journal.event import Blob, HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import JobCompleted, JobCreated, ToolInvocationFinished, ToolInvocationStarted
from remit.journal.sqlite.store import SqliteStore
from remit.policy.rules import Policy
from remit.settings import load

JOBS, CALLS, ROUNDS = 5_000, 20, 3
RULES: Final[list[dict[str, Any]]] = [
    {"id": "small", "effect": "allow", "tools": ["shop.*"], "when": {"amount": {"max": 500}}},
    {"id": "never", "effect": "deny", "tools": ["shop.drop"]},
]
OTHER: Final = [{"id": "smaller", "effect": "allow", "tools": ["shop.*"], "when": {"amount": {"max": 100}}}]
_OLD: Final = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}},
    "required": ["amount", "to"],
}


@tool("shop.pay", level="L1", version="2")
async def pay(amount: int, to: str, currency: str) -> int:
    """Pay, in a version that wants one argument more: every recorded call is checked."""
    return amount + len(to) + len(currency)


async def drift(lab: Lab) -> list[Result]:
    """Both over a journal of 100,000 calls, beside decoding its events alone."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        path = str(Path(own) / "calls.db")
        await _filled(path)
        reports = await against(
            "drift over 100,000 calls",
            "ms",
            lambda: _report(path),
            lambda: _decoded(path),
            "floor: read and decode the same events; both by processor time",
            mark=Mark(3_000),
            rounds=ROUNDS,
        )
        tries = await against(
            "backtest over 100,000 calls",
            "ms",
            lambda: _backtest(path),
            lambda: _decoded(path),
            "floor: read and decode the same events; both by processor time",
            mark=Mark(3_000),
            rounds=ROUNDS,
        )
    return [*reports, *tries]


async def _filled(path: str) -> None:
    """A journal of jobs with calls under an older schema, each with arguments of its own."""
    clock, policy = SystemClock(), Policy.parse(RULES)
    journal = Journal(SqliteStore(path, clock), clock)
    blobs = [Blob(digest(_OLD), canonical(_OLD)), Blob(policy.hash, policy.text)]
    try:
        for job in range(JOBS):
            writer = journal.writer(f"job/job_{job}", "job")
            events = [event for call in range(CALLS) for event in _called(policy, job, call)]
            created = JobCreated(kind="recipe", name="shopping", principal="ada", execution_version="1+a")
            patch = HeadPatch(state="completed", closed=True, labels={"remit.name": "shopping"})
            await journal.append(
                writer, created, *events, JobCompleted(), synced=False, patch=patch, blobs=blobs if not job else ()
            )
    finally:
        await journal.close()


def _called(policy: Policy, job: int, call: int) -> tuple[ToolInvocationStarted, ToolInvocationFinished]:
    args, name = {"amount": (job * CALLS + call) * 37 % 500, "to": f"{job}-{call}"}, f"inv_{job}_{call}"
    started = ToolInvocationStarted(
        invocation_id=name,
        step=str(call + 1),
        tool_name="shop.pay",
        arguments_hash=digest(args),
        idempotency_key=name,
        tool_version="1",
        request_schema_hash=digest(_OLD),
        args=msgspec.Raw(msgspec.json.encode(args)),
        capability_level=1,
        risk_level="write",
        provider_id="local",
        side_effect="write",
        principal="ada",
        rule_id="small",
        policy_hash=policy.hash,
        policy_kept=True,
        confirms=True,
    )
    return started, ToolInvocationFinished(invocation_id=name, step=started.step, outcome="success")


def _opened(path: str) -> Remit:
    settings = load(env={}, search=False, flags={"journal.url": path, "policy.rules": RULES})
    return Remit(settings=settings, tools=[pay], work=False)


async def _report(path: str) -> Reading:
    async with _opened(path) as remit:
        await remit.service.tools.metas()
        watch = Watch()
        report = await remit.service.drift.report()
        taken = watch.processor_millis(1)
    (changed,) = report.tools
    assert (changed.calls, changed.refused) == (JOBS * CALLS, JOBS * CALLS)
    return taken


async def _backtest(path: str) -> Reading:
    async with _opened(path) as remit:
        await remit.service.tools.metas()
        watch = Watch()
        report = await remit.service.drift.backtest(OTHER)
        taken = watch.processor_millis(1)
    assert report.decisions == JOBS * CALLS
    assert report.now.ask > report.recorded.ask
    return taken


async def _decoded(path: str) -> Reading:
    kinds = (ToolInvocationStarted.KIND, ToolInvocationFinished.KIND, JobCreated.KIND)
    return await decoded(path, JOBS * (2 * CALLS + 1), lambda watch: watch.processor_millis(1), kinds)
