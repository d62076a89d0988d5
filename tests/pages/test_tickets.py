from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, tool
from remit.settings import load
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e\u200b'\"&</pre>"


@tool("pad.read", level="L0")
def read(text: str) -> str:
    """Read."""
    return text


def message(text: str = HOSTILE, thread: str = "t1") -> dict[str, Any]:
    return {"type": "message", "thread_id": thread, "content": text, "actor": HOSTILE}


def asks(*texts: str) -> dict[str, Any]:
    """A TOOL ticket with a step for each text."""
    steps = [{"tool_name": "pad_read", "args": {"text": text}} for text in texts]
    return {"type": "TOOL", "event": message("look"), "tool_input": {"tool_steps": steps}}


async def test_tickets_stand_by_state_and_are_chosen_by_kind_and_thread(served: Served) -> None:
    async with Remit(":memory:", tools=[read]) as opened, served(opened) as browser:
        tickets = opened.service.tickets
        assert "remit tickets create" in (await browser.get("/tickets")).text
        first = await tickets.create({"type": "TRIAGE", "event": message("one", "t/1")})
        second = await tickets.create({"type": "TRIAGE", "event": message()})
        third = await tickets.create(asks("a"))
        await tickets.block(first.id, code="HELD", reason=HOSTILE, source="ann")
        page = (await browser.get("/tickets")).text
        columns = dict(re.findall(r'<section aria-labelledby="c-(\w+)">(.*?)</section>', page, re.DOTALL))
        assert list(columns) == ["pending", "running", "blocked", "failed", "done"]
        assert first.id in columns["blocked"]
        assert "HELD: &lt;script&gt;" in columns["blocked"]
        assert second.id in columns["pending"]
        assert "<script>alert" not in page
        assert "\u202e" not in page
        tools = (await browser.get("/tickets?type=TOOL")).text
        assert third.id in tools
        assert first.id not in tools
        thread = (await browser.get("/tickets?thread=t%2F1")).text
        assert first.id in thread
        assert second.id not in thread
        for path in ("/tickets?type=odd", "/tickets?state=odd"):
            assert (await browser.get(path)).status == 400


async def test_one_state_is_read_page_by_page_with_its_filter(served: Served) -> None:
    async with Remit(":memory:") as opened, served(opened) as browser:
        for _ in range(51):
            await opened.service.tickets.create({"type": "TRIAGE", "event": message()})
        board = (await browser.get("/tickets")).text
        assert "20+" in board
        page = (await browser.get("/tickets?state=pending&thread=t1")).text
        assert page.partition("</main>")[0].count('<th scope="row">') == 50
        following = page.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
        assert "thread=t1" in following
        assert (await browser.get(following)).text.partition("</main>")[0].count('<th scope="row">') == 1


async def test_a_ticket_shows_its_steps_report_reply_and_history(served: Served) -> None:
    async with Remit(":memory:", tools=[read]) as opened, served(opened) as browser:
        tickets = opened.service.tickets
        triage = await tickets.create({"type": "TRIAGE", "event": message()})
        steps = asks("a", HOSTILE)["tool_input"]["tool_steps"]
        filled = await tickets.fill(triage.id, {"triage": "look", "tool_steps": steps}, by="http_fill")
        assert filled.derived is not None
        page = (await browser.get(f"/tickets/{triage.id}")).text
        assert f'href="/tickets/{filled.derived.ticket}"' in page
        assert re.findall(r'<th scope="row">(created|completed|derived)</th>', page) == [
            "created",
            "completed",
            "derived",
        ]
        before = (await browser.get(f"/tickets/{filled.derived.ticket}")).text
        assert "No run has begun" in before
        assert f'href="/tickets/{triage.id}"' in before
        found = await tickets.get(filled.derived.ticket)
        leased = await tickets.lease_by_id(found.id, owner="w", lease_sec=60)
        assert leased.ticket.id == found.id
        running = (await browser.get(f"/tickets/{found.id}")).text
        assert "w works on it" in running
        assert leased.lease_token not in running
        for text in (page, before, running):
            assert "<script>alert" not in text
            assert "\u202e" not in text
        assert (await browser.get("/tickets/tkt_none")).status == 404


async def test_steps_that_cannot_be_read_are_said(served: Served, tmp_path: Path) -> None:
    flags = {"journal.url": ":memory:", "tools.schema_gate": "off"}
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    async with Remit(settings=settings, tools=[read]) as opened, served(opened) as browser:
        bad = {"type": "TOOL", "event": message(), "tool_input": {"tool_steps": [{"tool_name": "a.b", "args": {}}]}}
        ticket = await opened.service.tickets.create(bad)
        page = await browser.get(f"/tickets/{ticket.id}")
        assert page.status == 200
        assert "has a dot in its tool_name" in page.text


async def test_a_stopped_ticket_is_retried_by_a_form(served: Served) -> None:
    tokens = [token("ann", "read"), token("bob", "tickets")]
    async with Remit(":memory:") as opened, served(opened, tokens) as browser:
        tickets = opened.service.tickets
        ticket = await tickets.create({"type": "TRIAGE", "event": message()})
        await tickets.block(ticket.id, code="HELD", reason="why", source="ann")
        await browser.log_in("secret-ann")
        page = await browser.get("/jobs")
        assert 'href="/tickets"' not in page.text
        assert (await browser.get("/tickets")).status == 403
        assert (await browser.send(f"/tickets/{ticket.id}/retry", [("csrf", page.csrf)])).status == 403
        assert (await tickets.get(ticket.id)).status == "blocked"
        await browser.log_in("secret-bob")
        page = await browser.get(f"/tickets/{ticket.id}")
        assert "HELD" in page.text
        done = await browser.send(f"/tickets/{ticket.id}/retry", [("csrf", page.csrf)])
        assert done.status == 303
        assert (await tickets.get(ticket.id)).status == "pending"
        again = await browser.send(f"/tickets/{ticket.id}/retry", [("csrf", page.csrf)])
        assert again.status in {303, 409}
