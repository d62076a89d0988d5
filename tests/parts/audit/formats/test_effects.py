"""What is known of an effect, and who says so: every format tells it as the trace does."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.evidence.verify import check
from remit.parts.audit.formats import intoto, ocsf, otlp, receipts
from remit.parts.audit.formats.account import ExportAccount
from remit.parts.audit.package import write_package
from remit.tools.provider import CallContext, ToolResult
from tests.opened import until
from tests.parts.audit.formats.errands import signed
from tests.parts.audit.formats.test_otlp import attributes, spans_of
from tests.parts.audit.formats.test_traps import lines_of
from tests.service.effects import CAUSES, Odd, said

_BY_WORDS = {cause.words: cause for cause in CAUSES}
CALLS = (
    ("odd.reads", "the tool answers"),
    ("odd.writes", "the tool answers"),
    ("odd.writes", "its answer does not fit its output schema"),
    ("odd.writes", "it raises an exception, or says that it failed (`isError`)"),
    ("odd.writes", 'it says that nothing happened (`effect="none"`)'),
    ("odd.writes", "… and a person says that it failed"),
    ("odd.writes", "the connection is lost"),
)
"""A person decides about the last but one; the last one is left unknown."""
EFFECTS = [
    ("", ""), ("committed", "tool"), ("committed", "tool"), ("unknown", "tool"), ("none", "tool"), ("none", "person"),
    ("unknown", "remit"),
]  # fmt: skip
Told = list[tuple[str, str]]
"""Effect and who says so, of each call."""


class Changing(Odd):
    """A provider that does what each call names."""

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self.cause = _BY_WORDS[args["cause"]]
        return await super().invoke(name, args, ctx)


@recipe("changes")
async def changes(run: Run) -> None:
    """Make each call, whatever becomes of it."""
    for name, cause in CALLS:
        await run.attempt(name, {"cause": cause})


@pytest.fixture
async def remit() -> Any:
    rule, odd = {"effect": "allow", "tools": ["odd.*"]}, Changing(_BY_WORDS["the tool answers"])
    async with Remit(":memory:", providers=[odd], recipes=[changes], policy=[rule]) as opened:
        yield opened


def _pairs(rows: Iterable[dict[str, Any]], effect: str = "effect", by: str = "effect_by") -> Told:
    return [(row.get(effect, ""), row.get(by, "")) for row in rows]


def told(package: bytes, folder: Path) -> dict[str, Told]:
    """What each format of a package says in the end."""
    account, (signer, _) = ExportAccount(BytesIO(package)), signed(folder)
    with zipfile.ZipFile(BytesIO(package)) as file:
        ledger = [json.loads(line) for line in file.read("ledger.ndjson").splitlines()]
    acts = [json.loads(line)["unmapped"] for line in ocsf.write(account)]
    spans = [attributes(span) for span in spans_of(otlp.write(account))]
    given = [json.loads(line)["payload"] for line in receipts.write(account, signer)]
    records = [json.loads(line) for line in intoto.write(account, signer)[intoto.RECORDS].splitlines()]
    events = lines_of(account, folder, "events")
    outcomes = {row["invocation_id"]: row for row in given if row["type"] == "dev.remit:outcome"}
    results = {row["event"]["id"]: row["ext"]["remit"] for row in events if row.get("event", {}).get("dir") == "in"}
    return {
        "ledger": _pairs(ledger),
        "ocsf": _pairs(act for act in acts if act["kind"] == "tool_invocation_started"),
        "otlp": _pairs((span for span in spans if "remit.attempt" in span), "remit.effect", "remit.effect.by"),
        "receipts": _pairs(outcomes.values()),
        "in-toto": _pairs(row["extensions"]["dev.remit"] for row in records if row["type"] == "tool_call"),
        "ael": _pairs(results.values()),
    }


async def test_every_format_tells_of_an_effect_what_the_trace_tells(remit: Remit, tmp_path: Path) -> None:
    job = await remit.service.jobs.start_named("changes", {})
    await until(remit, job, lambda row: row.waiting_for.endswith(f"step {len(CALLS) - 1}"))
    await remit.service.steps.decide(job, str(len(CALLS) - 1), "fail", reason="I looked")
    await until(remit, job, lambda row: row.waiting_for.endswith(f"step {len(CALLS)}"))
    story = await remit.service.streams.narrative(job)
    assert [said(step.state_diff) for step in story.steps] == EFFECTS
    asked = await remit.service.audit.ask(job)
    calls = [one for one in reversed(asked.entries) if one.what in {"called", "uncertain"}]
    assert [(one.effect, one.effect_by) for one in calls] == EFFECTS
    with (tmp_path / "one.zip").open("w+b") as file:
        await write_package(remit.runtime.journal, job, file)
    assert told((tmp_path / "one.zip").read_bytes(), tmp_path) == dict.fromkeys(
        ("ledger", "ocsf", "otlp", "receipts", "in-toto", "ael"), EFFECTS
    )
    assert check(str(tmp_path / "one.zip")).state == "prefix"
