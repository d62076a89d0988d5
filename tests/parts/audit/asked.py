"""A journal in which everything happened that an auditor asks about, recorded event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from remit.journal import kinds as k
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import ManualClock

SCHEMA: Final = "sha256:" + "5" * 64
DIGEST: Final = "sha256:" + "d" * 64
HOSTILE: Final = "</script><img src=x onerror=alert(1)>"
JOBS: Final = ("job_01m8b7hgjbe00826q3kv6k24zr", "job_01m8b7hgjbe00826q3kv6k24zs", "job_01m8b7hgjbe00826q3kv6k24zt")
HOUR: Final = 3_600_000_000


def started(name: str, tool: str, *, who: str = "ada", version: str = "1", **more: object) -> k.ToolInvocationStarted:
    """The announcement of a call; `args` are a value."""
    fields = {
        "arguments_hash": "",
        "idempotency_key": f"key-{name}",
        "tool_version": version,
        "request_schema_hash": SCHEMA,
        "capability_level": 1,
        "side_effect": "write",
        "provider_id": "local",
        "principal": who,
        "rule_id": "small",
        **_recorded(more),
    }
    return k.ToolInvocationStarted(invocation_id=name, tool_name=tool, step=name, **fields)  # type: ignore[arg-type] # a test's own fields


def finished(name: str, **more: object) -> k.ToolInvocationFinished:
    """The end of a call."""
    fields = {"outcome": "success", **_recorded(more)}
    return k.ToolInvocationFinished(invocation_id=name, step=name, **fields)  # type: ignore[arg-type] # a test's own fields


def _recorded(fields: dict[str, object]) -> dict[str, object]:
    values = {"args", "result"}
    return {name: msgspec.Raw(msgspec.json.encode(one)) if name in values else one for name, one in fields.items()}


def asked(name: str, *, answered: str = "gpt-5-2026-01-01", who: str = "ada") -> tuple[k.Payload, k.Payload]:
    """A question to a model, and its answer."""
    question = k.CommandStarted(
        invocation_id=name, step=name, llm_provider="openai", llm_model="gpt-5", principal=who, prompt_hash=DIGEST
    )
    answer = k.CommandCommitted(
        invocation_id=name, step=name, llm_provider="openai", llm_model=answered, prompt_hash=DIGEST, token_count=120,
        llm_temperature=0.5, cost=0.25, result=msgspec.Raw(b'"yes"'),
    )  # fmt: skip
    return question, answer


async def record(path: Path) -> None:
    """Record it in a file."""
    clock = ManualClock()
    journal = Journal(SqliteStore(str(path), clock), clock)
    try:
        await record_in(journal, clock)
    finally:
        await journal.close()


async def record_in(journal: Journal, clock: ManualClock) -> None:
    """Record it: the first job an hour before the second, which has not ended, and a third that did it again."""
    first, second, third = (f"job/{job}" for job in JOBS)
    question = f"{first}/confirmation/cnf_1"
    writer = await journal.create(
        first, "job", _created("ada"), *asked("1"),
        k.ConfirmationRequested(confirmation="cnf_1", step="2", digest=DIGEST),
        started("2", "shop.pay", confirmation="cnf_1"), finished("2"), started("3", "shop.look", side_effect="read"),
        finished("3", outcome="failure", error=k.ErrorInfo(code="TOOL_TIMEOUT")),
        k.GateRefused(
            step="4", tool_name="shop.drop", code="POLICY_DENIED", reason=f"never {HOSTILE}", principal="ada",
            rule_id="never", stage="authorize",
        ),
    )  # fmt: skip
    await journal.create(
        question, "confirmation",
        k.ConfirmationRequested(
            confirmation="cnf_1", step="2", digest=DIGEST, tool_name="shop.pay", principal="ada",
            provider_id="local",
        ),
        k.ConfirmationDecided(
            confirmation="cnf_1", decision="approve", digest=DIGEST, by="mia", proof="signature", signature="s"
        ),
        k.ConfirmationUsed(confirmation="cnf_1", invocation_id="2"),
        patch=HeadPatch(state="approved", closed=True, labels={"id": "cnf_1"}),
    )  # fmt: skip
    ended = HeadPatch(state="completed", closed=True)
    await journal.append(writer, k.JobCompleted(), synced=True, patch=ended)
    clock.advance(HOUR)
    await journal.create(
        second, "job", _created("bob"), *asked("1", answered="gpt-5-2026-06-01", who="bob"),
        started("2", "shop.pay", who="bob", version="2"),
        started("3", "shop.send", who="bob"), finished("3", outcome="failure", step_outcome="uncertain"),
        started("4", "shop.mail", who="bob"), finished("4", decided_by="mia", outcome="success"),
        patch=HeadPatch(state="waiting"),
    )  # fmt: skip
    await journal.post(f"{second}/inbox", "inbox", k.CancelRequested(by="mia", reason="enough"))
    rule = {"id": "apr_1", "tool": "shop.pay"}
    await journal.create("approval/apr_1", "approval", k.ApprovalRemembered(rule=rule, by="mia", confirmation="cnf_1"))
    await journal.post("approval/apr_1", "approval", k.ApprovalRevoked(by="mia", reason="over"))
    copied = k.JobForked(job=JOBS[0], seq=5, hash="", taken=2)
    await journal.create(
        third, "job", _created("ada"), copied, started("2", "shop.pay"), finished("2"),
        started("5", "shop.look", side_effect="read"), finished("5"), k.JobCompleted(), patch=ended,
    )  # fmt: skip


def _created(who: str) -> k.JobCreated:
    return k.JobCreated(kind="recipe", name="buy", principal=who, execution_version="1+a")
