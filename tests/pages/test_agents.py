from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from remit import Remit, tool
from remit.jobs.state import stream_of
from remit.models.reply import Delta
from remit.service.options import Options
from remit.settings import load
from tests.pages.browsing import browsing, window
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e\u200b'\"&</pre>"


@tool("pad.read", level="L0")
def read(text: str) -> str:
    """Read."""
    return f"read {text}"


def remit(folder: Path, steps: list[dict[str, Any]]) -> Remit:
    (folder / "s.json").write_text(json.dumps(steps))
    flags = {
        "models.default": "scripted:s.json",
        "models.prices": [{"model": "scripted:*", "input": 1_000, "output": 1_000}],
        "journal.url": ":memory:",
        "app.principal": "ada",
    }
    return Remit(settings=load(cwd=folder, file=None, env={}, flags=flags), tools=[read])


STEPS: list[dict[str, Any]] = [
    {"say": f"I look. {HOSTILE}", "call": [{"tool": "pad.read", "args": {"text": HOSTILE}}]},
    {"say": "It is about milk."},
    {"say": "And about eggs."},
]


async def begin(opened: Remit, task: str = HOSTILE) -> str:
    job = await opened.service.jobs.start_named("agent", {"task": task, "tools": ["pad.*"]})
    await opened.service.jobs.settled([job])
    return job


async def test_a_conversation_shows_calls_with_results_tokens_and_cost(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as browser:
        assert "There is no agent yet" in (await browser.get("/agents")).text
        job = await begin(opened)
        listed = (await browser.get("/agents")).text
        assert f'href="/agents/{job}"' in listed
        assert f'href="/agents/{job}">Conversation' in (await browser.get(f"/jobs/{job}")).text
        page = (await browser.get(f"/agents/{job}")).text
        assert "It is about milk." in page
        assert "pad.read" in page
        assert "read &lt;script&gt;alert(1)" in page
        assert re.search(r"[\d,]+ tokens in 2 requests, \$\d", page)
        for text in (listed, page):
            assert "<script>alert" not in text
            assert "\u202e" not in text
            assert "\u200b" not in text


async def test_more_is_said_by_a_form_and_a_new_job_answers(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as browser:
        job = await begin(opened)
        page = await browser.get(f"/agents/{job}")
        empty = await browser.send(f"/agents/{job}/say", [("csrf", page.csrf), ("text", " ")])
        assert empty.status == 400
        assert 'role="alert"' in empty.text
        said = await browser.send(f"/agents/{job}/say", [("csrf", page.csrf), ("text", "And\r\nwhat else?")])
        assert said.status == 303
        answering = said.headers["location"].rpartition("/")[2]
        assert answering != job
        await opened.service.jobs.settled([answering])
        followed = (await browser.get(f"/agents/{answering}")).text
        assert "And\nwhat else?" in followed
        assert "And about eggs." in followed
        assert "It is about milk." in followed
        assert f'Continues</dt><dd><a href="/jobs/{job}"' in (await browser.get(f"/jobs/{answering}")).text
        assert f'Continued as</dt><dd><a href="/jobs/{answering}"' in (await browser.get(f"/jobs/{job}")).text


async def test_what_is_no_agent_cannot_be_spoken_to(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, [{"say": "yes"}]) as opened, served(opened) as browser:
        job = await opened.service.jobs.start_named("ask_model", {"prompt": "Is it?"})
        await opened.service.jobs.settled([job])
        page = await browser.get(f"/agents/{job}")
        assert "/say" not in page.text
        csrf = (await browser.get("/policy")).csrf
        refused = await browser.send(f"/agents/{job}/say", [("csrf", csrf), ("text", "more")])
        assert refused.status == 409
        assert "JOB_NOT_CONVERSATION" in refused.text
        assert (await browser.get("/agents/job_none")).status == 404


async def test_speaking_needs_the_scope_call_and_to_an_agent_at_work_decide(served: Served, tmp_path: Path) -> None:
    tokens = [token("ann", "read"), token("bob", "read", "call")]
    async with remit(tmp_path, STEPS) as opened, served(opened, tokens) as browser:
        done = await begin(opened)
        at_work = await opened.service.jobs.start_named("agent", {"task": "x", "tools": []}, Options(delay_s=3_600))
        await browser.log_in("secret-ann")
        page = await browser.get(f"/agents/{done}")
        assert "/say" not in page.text
        assert (await browser.send(f"/agents/{done}/say", [("csrf", page.csrf), ("text", "x")])).status == 403
        await browser.log_in("secret-bob")
        page = await browser.get(f"/agents/{done}")
        assert f"/agents/{done}/say" in page.text
        assert "/say" not in (await browser.get(f"/agents/{at_work}")).text
        refused = await browser.send(f"/agents/{at_work}/say", [("csrf", page.csrf), ("text", "x")])
        assert (refused.status, "SCOPE_REQUIRED" in refused.text) == (403, True)


async def test_what_an_agent_says_is_seen_while_it_says_it(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as browser, browsing() as chromium:
        job = await begin(opened)
        async with window(chromium, browser.url) as shown:
            page = await shown.open(f"/agents/{job}")
            await expect(page.locator("#live-state")).to_have_text("Live")
            with opened.runtime.gateway.services.tails.open(stream_of(job), "9") as say:
                say(Delta("text", "There are "))
                await expect(page.locator("#speech")).to_contain_text("There are")
                say(Delta("text", HOSTILE))
                await expect(page.locator("#speech")).to_contain_text("{{ 7*7 }}⟨U+202E⟩⟨U+200B⟩")
            await opened.service.conversations.say(job, "And now?")
            await expect(page.locator("#speech .text")).to_have_count(0)
            assert await page.evaluate("document.querySelectorAll('script').length") == 2


async def test_the_row_of_an_agent_is_its_task(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, STEPS) as opened, served(opened) as browser:
        given = {"task": "Look around the harbour", "tools": [], "turns": 3}
        await opened.service.jobs.start_named("agent", given, Options(delay_s=3_600))
        text = (await browser.get("/agents")).text
    assert ">Look around the harbour" in text
    assert "task:" not in text
