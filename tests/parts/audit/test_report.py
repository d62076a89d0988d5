"""The report: each duty with the events that answer it, and what is not recorded said as plainly as what is."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.cli.root import run
from remit.client import RemoteRemit
from remit.journal.kinds import REFERENCES, declare, payload_of
from remit.parts.audit import kinds as _kinds  # noqa: F401 - declares its kind
from remit.parts.audit import report
from remit.parts.audit.facts import FIELDS, Act, Counts
from remit.parts.audit.report import DUTIES
from remit.wiring.capabilities import FIRST_PARTY
from tests.client.conftest import serving
from tests.opened import OpenRemit
from tests.parts.audit.asked import HOUR, record
from tests.parts.audit.test_answers import opened


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asked") / "journal.db"
    asyncio.run(record(path))
    return path


def rows(found: Any) -> dict[tuple[str, str], Any]:
    return {(row["source"], row["clause"]): row for row in found["duties"]}


def test_every_duty_names_kinds_and_fields_that_there_are() -> None:
    for part in FIRST_PARTY:
        declare(part.kinds)
    assert len([duty for duty in DUTIES if duty.source == "Fourteen fields"]) == 14
    for duty in DUTIES:
        assert set(duty.kinds) <= set(REFERENCES), duty
        for field in (*duty.every, *duty.some):
            kind, _, name = field.partition(".")
            assert name in FIELDS[kind], field
    for kind, names in FIELDS.items():
        assert set(names) <= set(payload_of(kind).__struct_fields__), kind


@pytest.mark.parametrize(
    ("source", "clause", "answer", "events"),
    [
        ("Fourteen fields", "1", "not recorded", 0),
        ("Fourteen fields", "7", "recorded", 2),
        ("Fourteen fields", "10", "partly", 1),
        ("Fourteen fields", "13", "not recorded", 0),
        ("Fourteen fields", "14", "partly", 6),
        ("AI Act", "12(2)(a)", "recorded", 1),
        ("AI Act", "14(1)", "recorded", 2),
        ("AI Act", "14(4)(e)", "recorded", 1),
        ("AI Act", "26(2)", "partly", 1),
        ("ISO/IEC 42001", "A.6.2.8", "recorded", 31),
    ],
)
async def test_a_duty_is_answered_from_events(
    journal: Path, source: str, clause: str, answer: str, events: int
) -> None:
    async with opened(journal) as remit:
        found = msgspec.to_builtins(await remit.service.audit.report())
    row = rows(found)[source, clause]
    assert (row["answer"], row["events"]) == (answer, events), row


async def test_what_a_field_lacks_is_counted(journal: Path) -> None:
    async with opened(journal) as remit:
        found = rows(msgspec.to_builtins(await remit.service.audit.report()))
    row = found["Fourteen fields", "14"]
    assert "6 of 6 tool_invocation_started have no policy_hash." in row["gaps"]
    assert "policy_hash on 0 of 6 tool_invocation_started" in row["details"]
    assert any("audit.reads" in gap for gap in found["AI Act", "26(5)"]["gaps"])


def test_retention_that_is_too_short_is_named() -> None:
    kept = report.kept_rows([("jobs", 30), ("tickets", 365)], 7)
    assert [row.enough for row in kept] == [False, True, True, False]
    assert [row.enough for row in report.kept_rows([], 0)] == [True, True]


async def test_the_retention_in_force_is_said_in_words(remit_in: OpenRemit) -> None:
    rules = [{"keep": "30d", "kinds": ["job", "work"], "labels": {"team": "a"}}, {"keep": "365d"}]
    async with remit_in(work=False, flags={"retention.rules": rules}) as remit:
        kept = (await remit.service.audit.report()).kept
    assert [(row.what, row.kept, row.enough) for row in kept][:2] == [
        ("events of kinds job, work; labels team: a", "30 days", False),
        ("events of jobs, sessions, tickets, work, schedules, messages and logins", "365 days", True),
    ]


@pytest.mark.parametrize(("decision", "answer"), [("approve", "not recorded"), ("deny", "recorded")])
def test_an_approval_overrides_nothing(decision: str, answer: str) -> None:
    counts = Counts(kinds={"confirmation_decided": 1}, acts=[Act("answered", 1, 1, "shop.pay", "mia", decision)])
    (row,) = (row for row in report.duty_rows(counts, reads=True) if row.clause == "14(4)(d)")
    assert row.answer == answer


def test_nothing_recorded_is_an_answer() -> None:
    found = report.duty_rows(Counts(), reads=True)
    assert {row.answer for row in found} == {"not recorded"}
    assert all(row.gaps for row in found)


def test_every_face_gives_the_same_report(journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, far = asyncio.run(_here_and_far(journal))
    assert here == far
    words = ["--journal", str(journal), "audit", "--report"]
    assert run([*words, "--json"]) == 0
    assert undated(json.loads(capsys.readouterr().out)) == here
    assert run(words) == 0
    assert "Only a recorder names" in capsys.readouterr().out
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    assert run([*words, "--html", str(page), "--markdown", str(text)]) == 0
    assert run([*words, "--html", str(page)]) == 2
    assert run([*words, "--tool", "shop.pay"]) == 2
    assert run([*words[:3], "--markdown", str(text)]) == 2
    html, written = page.read_text(encoding="utf-8"), text.read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=\"|https?://|@import|url\(", html)
    for duty in DUTIES:
        assert f">{duty.duty}</th>" in html
        assert f"| {duty.clause} | {duty.duty} | " in written
    assert len({line.count(" | ") for line in written.splitlines() if line.startswith("| 1")}) == 1


async def _here_and_far(path: Path) -> tuple[Any, Any]:
    async with opened(path) as remit, serving(remit.service) as url, RemoteRemit(url, "") as far:
        found = [await one.service.audit.report() for one in (remit, far)]
        middle = found[0].made_at - HOUR
        assert (await far.service.audit.report(middle, until=middle)).events == 0
    here, there = (undated(json.loads(msgspec.json.encode(one))) for one in found)
    return here, there


def undated(found: Any) -> Any:
    return {name: value for name, value in found.items() if name != "made_at"}
