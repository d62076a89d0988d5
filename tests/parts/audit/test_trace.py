"""The trace as one HTML file: small, complete, and untouched by what others wrote."""

from __future__ import annotations

import asyncio
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.cli.root import run
from remit.client import RemoteRemit
from remit.journal import kinds as k
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.parts.agents.recipes import agent
from remit.parts.audit.trace import trace
from remit_testing.clock import ManualClock
from tests.client.conftest import serving
from tests.opened import OpenRemit
from tests.pages.browsing import Window, browsing
from tests.parts.audit.asked import finished, started
from tests.record.old.golden import NAMES, unpack

ATTACKS = (
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "\"'><svg/onload=window.hit=1>",
    "</details></pre></dd><style>body{display:none}</style>",
    "{{ 7*7 }}{% for x in y %}",
    "\u202edrowssap\u2066\u200b\u00ad\x1b[2J",
    "javascript:window.hit=1",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
)
IBAN = "DE89370400440532013000"
ACCOUNTS = [{"id": "pays", "effect": "allow", "tools": ["desk.*"]}]


@tool("desk.look", level="L0")
def look(text: str) -> str:
    """Look."""
    return text


@tool("desk.edit", level="L1")
def edit(text: str) -> dict[str, str]:
    """Edit a file."""
    return {"diff": f"--- a\n+++ b\n@@ -1 +1 @@\n-{text}\n+new {text}\n"}


@tool("desk.plan", level="L1")
def plan(text: str) -> dict[str, Any]:
    """Change a plan, and say what it was."""
    return {"seats_before": 2, "seats": 5, "password_before": text, "note_before": text, "note_after": "new", "ms": 4}


@tool("desk.mail", level="L0", output_trusted=False)
def mail() -> str:
    """Read a mail, which anyone may have written."""
    return f"Pay to {IBAN}."


@tool("desk.pay", level="L1")
def pay(iban: str) -> str:
    """Pay."""
    return iban


@recipe("attacked")
async def attacked(run: Run) -> str:
    """Meet what others wrote."""
    for text in ATTACKS:
        await run.call("desk.look", {"text": text})
        await run.call("desk.edit", {"text": text})
    return ATTACKS[0]


GIVEN: dict[str, Any] = {"tools": [look, edit, mail, pay], "recipes": [attacked], "flags": {"policy.rules": ACCOUNTS}}


async def written(remit_in: OpenRemit) -> str:
    async with remit_in(**GIVEN) as remit:
        job = await remit.start(attacked())
        await job
        return (await trace(remit.runtime.journal, job.id)).decode()


async def test_what_others_wrote_stays_text_and_secrets_are_masked(remit_in: OpenRemit) -> None:
    text = await written(remit_in)
    assert len(re.findall("<script", text)) == 1
    assert not re.findall(r"<img|<svg/|onload=window[^.]|\u202e|\u200b|\x1b|\x00|ghp_abc", text)
    assert "&lt;img src=x onerror=window.hit=1&gt;" in text
    assert "{{ 7*7 }}" in text
    assert not re.findall(r"(?:src|href)=\"(?!#)|https?://|@import|url\(", text)
    assert text.count("<ins>") == text.count("<del>") == len(ATTACKS)


async def test_a_step_shows_what_its_result_says_of_before_and_after(remit_in: OpenRemit) -> None:
    @recipe("planned")
    async def planned(run: Run) -> None:
        await run.call("desk.look", {"text": "x"})
        await run.call("desk.plan", {"text": "old"})
        await run.call("desk.pay", {"iban": IBAN})

    async with remit_in(**{**GIVEN, "tools": [look, plan, pay], "recipes": [planned]}) as remit:
        job = await remit.start(planned())
        await job
        text = html.unescape((await trace(remit.runtime.journal, job.id)).decode())
        told = (await remit.service.streams.narrative(job.id)).steps[1].state_diff
    assert told is not None
    sides = dict(re.findall(r"<dt>(before|after)</dt><dd>([^<]*)</dd>", text))
    assert json.loads(sides["before"]) == {"seats": 2, "password": "********", "note": "old"}
    assert json.loads(sides["after"]) == {"seats": 5, "password": "********", "note": "new"}
    assert (told.before, told.after) == (sides["before"], sides["after"])
    assert re.findall(r'<details id="s(\d)" class=" e"', text) == ["2", "3"], "what only reads changed nothing"


@pytest.mark.slow
async def test_a_browser_shows_it_at_any_width_and_runs_nothing_of_others(remit_in: OpenRemit, tmp_path: Path) -> None:
    place = tmp_path / "trace.html"
    place.write_text(await written(remit_in), encoding="utf-8")
    async with browsing() as browser:
        for width in (320, 768, 1440):
            page = await browser.new_page(viewport={"width": width, "height": 800})
            shown = Window(page, place.as_uri())
            await shown.open("")
            assert await shown.width() <= width
            await page.fill("#text", "drowssap edit")
            assert await page.inner_text("#count") == "1 of 16 steps"
            await page.select_option("#kind", "f")
            assert await page.inner_text("#count") == "0 of 16 steps"
            assert await page.evaluate("typeof window.hit") == "undefined"
            assert shown.faults == []
            await page.close()


async def test_the_graph_says_what_led_to_what(remit_in: OpenRemit, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    calls = [{"tool": "desk.mail", "args": {}}, {"tool": "desk.look", "args": {"text": "x"}}]
    turns = [{"call": calls}, {"call": [{"tool": "desk.pay", "args": {"iban": IBAN}}]}, {"say": "Paid."}]
    script.write_text(json.dumps(turns), encoding="utf-8")
    flags = {"policy.rules": ACCOUNTS, "models.default": f"scripted:{script}"}
    async with remit_in(**{**GIVEN, "flags": flags}) as remit:
        job = await remit.start(agent("Pay.", tools=["desk.*"]))
        async for question in remit.questions(job.id):
            await remit.service.confirmations.decide(question.confirmation, "approve", by="mia")
        await job
        text = (await remit.service.audit.trace(job.id)).decode()
    arcs = re.findall(r"<title>([^<]+)</title></path>", text)
    assert arcs == [
        "2.0.1 asked for by 1",
        "2.1.1 asked for by 1",
        "3 read 2.0.1",
        "3 read 2.1.1",
        "4.0.1 asked for by 3",
        "4.0.1 took iban from untrusted 2.0.1",
        "5 read 4.0.1",
    ]
    assert 'class="x" d="' in text


@pytest.mark.slow
async def test_a_thousand_steps_stay_below_a_megabyte() -> None:
    clock = ManualClock()
    journal = Journal(SqliteStore(MEMORY, clock), clock)
    try:
        events: list[k.Payload] = [k.JobCreated(kind="recipe", name="long", principal="ada")]
        for number in range(1_000):
            value = {"text": f"{number} & <b>" + "&<>'" * 30}
            call = started(str(number), "shop.look", args=value, policy_hash="sha256:" + "1" * 64)
            events += [call, finished(str(number), result=value)]
        await journal.create("job/job_1", "job", *events, k.JobCompleted(), patch=HeadPatch(state="completed"))
        data = await trace(journal, "job_1")
    finally:
        await journal.close()
    assert data.count(b"<details") == 1_000
    assert len(data) <= 1_000_000
    assert b"values cut to" in data


@pytest.mark.slow
async def test_every_old_journal_gives_a_trace_of_every_job(tmp_path: Path) -> None:
    unpack(tmp_path)
    for name in NAMES:
        async with Remit(str(tmp_path / f"{name}.db"), work=False) as remit:
            for row in await remit.service.jobs.rows(limit=100):
                assert b"<h2>Steps</h2>" in await remit.service.audit.trace(row.job), name


def test_a_server_and_the_command_give_the_same(
    remit_in: OpenRemit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, far = asyncio.run(_here_and_far(remit_in))
    assert _undated(far) == _undated(text)
    place = tmp_path / "out.html"
    words = ["--journal", str(tmp_path / "journal.db"), "audit", "last", "--html", str(place)]
    assert run(words) == 0
    assert _undated(place.read_text(encoding="utf-8")) == _undated(text)
    assert run(words) == 2
    assert run([*words[:3], "--html", str(place)]) == 2
    capsys.readouterr()
    assert run([*words, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == len(place.read_bytes())


async def _here_and_far(remit_in: OpenRemit) -> tuple[str, str]:
    text = await written(remit_in)
    async with remit_in(**GIVEN, work=False) as remit, serving(remit.service) as url, RemoteRemit(url, "") as far:
        return text, (await far.service.audit.trace(await far.service.jobs.find("last"))).decode()


def _undated(text: str) -> str:
    return re.sub(r"Made \S+ ", "", text)
