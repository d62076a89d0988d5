"""Live pages in a real browser: what changes comes by itself, and nothing that is read, opened or typed is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from remit import Remit, Run, recipe, tool
from remit.pages import session
from remit.tools.provider import CallContext
from tests.pages.browsing import window
from tests.pages.conftest import Served, token
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
SEEN = """(seen) => {
    Object.defineProperty(document, 'hidden', {get: () => !seen, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""
"""Without a screen all tabs are seen; this puts one behind another, or in front."""


@tool("shop.look", level="L0")
def look(item: str) -> str:
    """Look at an item."""
    return item


@tool("shop.order")
def order(item: str) -> str:
    """Order an item."""
    return item


@recipe("steps")
async def steps(run: Run) -> Any:
    """Take a step for each signal."""
    for number in range(3):
        await run.call("shop.look", {"item": f"item {number}"})
        await run.wait_signal("on")
    return "done"


@recipe("asks")
async def asks(run: Run) -> Any:
    """Ask before an order."""
    return (await run.call("shop.order", {"item": "milk"})).value


def remit() -> Remit:
    return Remit(":memory:", tools=[look, order], recipes=[steps, asks])


async def test_a_job_moves_on_under_the_eyes_of_its_reader(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        job = await opened.start(steps())
        await opened.service.jobs.settled([job.id])
        page = await shown.open(f"/jobs/{job.id}")
        await expect(page.locator("#live-state")).to_have_text("Live")
        await page.get_by_text("Signal", exact=True).click()
        await page.get_by_label("Payload, as JSON").fill('"typed"')
        await job.signal("on")
        await expect(page.locator("#step-rows").get_by_role("link", name="shop.look")).to_have_count(2)
        assert await page.get_by_label("Payload, as JSON").input_value() == '"typed"'
        await page.locator("#step-rows").get_by_role("link", name="shop.look").first.click()
        await expect(page.get_by_role("heading", name="1 shop.look")).to_be_visible()
        await shown.arrived(f"/jobs/{job.id}?step=1")
        await job.signal("on")
        await expect(page.locator("#step-rows").get_by_role("link", name="shop.look")).to_have_count(3)
        await expect(page.get_by_role("heading", name="1 shop.look")).to_be_visible()
        await page.get_by_text("Signal", exact=True).click()
        await job.signal("on")
        await expect(page.locator("h1")).to_contain_text("completed")


async def test_what_a_tool_logs_appears_beside_its_step_while_it_works(served: Served, browser: Browser) -> None:
    go_on = asyncio.Event()

    @tool("shop.count", level="L0")
    async def count(ctx: CallContext) -> int:
        """Count slowly."""
        ctx.log("412 rows", "warning")
        await go_on.wait()
        ctx.log("and the rest")
        return 412

    @recipe("counts")
    async def counts(run: Run) -> Any:
        """Count."""
        return await run.call(count)

    async with (
        Remit(":memory:", tools=[count], recipes=[counts]) as opened,
        served(opened) as server,
        window(browser, server.url) as shown,
    ):
        job = await opened.start(counts())
        page = await shown.open(f"/jobs/{job.id}?step=1")
        await expect(page.locator(".log li")).to_contain_text(["warning 412 rows"])
        go_on.set()
        await expect(page.locator(".log li")).to_contain_text(["412 rows", "and the rest"])
        await opened.service.jobs.settled([job.id])


async def test_news_between_press_and_release_take_no_click(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        job = await opened.start(steps())
        await opened.service.jobs.settled([job.id])
        page = await shown.open(f"/jobs/{job.id}")
        await expect(page.locator("#live-state")).to_have_text("Live")
        await page.get_by_text("Signal", exact=True).hover()
        await page.mouse.down()
        for _ in range(3):
            await opened.service.jobs.settled([job.id])
            await job.signal("on")
        await expect(page.locator("#step-rows").get_by_role("link", name="shop.look")).to_have_count(3)
        await page.mouse.up()
        await expect(page.get_by_label("Payload, as JSON")).to_be_visible()
        await page.get_by_text("Signal", exact=True).click()
        await expect(page.locator("h1")).to_contain_text("completed")


async def test_new_jobs_wait_to_be_asked_for_and_rows_change_in_place(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        first = await opened.start(asks())
        await opened.service.jobs.settled([first.id])
        page = await shown.open("/jobs")
        await expect(page.locator("#live-state")).to_have_text("Live")
        rows = page.locator("#rows tr")
        await expect(rows).to_have_count(1)
        where = await rows.first.bounding_box()
        second = await opened.start(asks())
        await opened.service.jobs.settled([second.id])
        button = page.get_by_role("button", name="1 new")
        await expect(button).to_be_visible()
        await expect(rows).to_have_count(1)
        (question,) = await first.questions()
        await opened.service.confirmations.decide(question.confirmation, "approve")
        await expect(rows.first).to_contain_text("completed")
        await button.click()
        await expect(rows).to_have_count(2)
        await expect(rows.first).to_contain_text("waiting for a person")
        assert where is not None


async def test_the_inbox_counts_by_itself_and_a_question_says_that_it_is_over(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        page = await shown.open("/")
        await expect(page.locator("#live-state")).to_have_text("Live")
        job = await opened.start(asks())
        await expect(page.get_by_role("link", name="Inbox 1 open")).to_be_visible()
        await page.get_by_role("link", name="Inbox 1 open").click()
        await page.get_by_role("link", name="shop.order").click()
        await expect(page.locator("#live-state")).to_have_text("Live")
        await page.get_by_label("Reason, which reaches the caller").fill("half typed")
        (question,) = await job.questions()
        await opened.service.confirmations.decide(question.confirmation, "deny", reason="elsewhere")
        await expect(page.get_by_text("It is over: denied.")).to_be_visible()
        assert await page.get_by_label("Reason, which reaches the caller").input_value() == "half typed"


async def test_seven_tabs_are_all_live(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server:
        context = await browser.new_context()
        context.set_default_timeout(PATIENCE_S * 1_000)
        tabs: list[Page] = []
        for _ in range(7):
            if tabs:
                await tabs[-1].evaluate(SEEN, False)  # as a browser does with the tab behind
                await expect(tabs[-1].locator("#live-state")).to_have_text("Paused")
            tabs.append(await context.new_page())
            await tabs[-1].goto(f"{server.url}/jobs")
            await expect(tabs[-1].locator("#live-state")).to_have_text("Live")
        job = await opened.start(asks())
        await opened.service.jobs.settled([job.id])
        await tabs[-1].evaluate(SEEN, False)
        for tab in tabs:
            await tab.evaluate(SEEN, True)
            await expect(tab.get_by_role("button", name="1 new")).to_be_visible()
            await tab.evaluate(SEEN, False)
        await context.close()


async def test_a_page_outlives_its_server(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        page = await shown.open("/jobs")
        await expect(page.locator("#live-state")).to_have_text("Live")
        port = int(server.url.rpartition(":")[2])
        await server.stop()
        await expect(page.locator("#live-state")).to_contain_text("Offline")
        async with served(opened, port=port):
            await expect(page.locator("#live-state")).to_have_text("Live")
            _ = await opened.start(asks())
            await expect(page.locator("#rows tr, .new").first).to_be_visible()
        shown.faults.clear()  # what the browser says of the server that was away


async def test_a_session_that_ended_says_so(served: Served, browser: Browser) -> None:
    async with (
        remit() as opened,
        served(opened, [token("ann", "read")]) as server,
        window(browser, server.url) as shown,
    ):
        page = await shown.open("/jobs")
        await page.get_by_label("Token").fill("secret-ann")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.locator("#live-state")).to_have_text("Live")
        await page.context.clear_cookies()
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await expect(page.locator("#live-state")).to_contain_text("Logged out")


async def test_tickets_sessions_and_calls_come_by_themselves(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        page = await shown.open("/tickets")
        await expect(page.locator("#live-state")).to_have_text("Live")
        event = {"type": "message", "thread_id": "t", "content": "Where is it?"}
        await opened.service.tickets.create({"type": "TRIAGE", "event": event})
        await expect(page.get_by_role("link", name="Where is it?")).to_be_visible()

        page = await shown.open("/sessions")
        await expect(page.locator("#live-state")).to_have_text("Live")
        await opened.call("shop.look", {"item": "milk"})
        await page.get_by_role("button", name="1 new").click()
        await page.locator("#session-rows a").click()
        await expect(page.locator("#live-state")).to_have_text("Live")
        await opened.call("shop.look", {"item": "tea"})
        await expect(page.locator("#step-rows tr")).to_have_count(2)
        await expect(page.locator("#facts")).to_contain_text("2")


async def test_a_step_that_is_open_shows_what_becomes_of_it(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        job = await opened.start(asks())
        await opened.service.jobs.settled([job.id])
        page = await shown.open(f"/jobs/{job.id}?step=1")
        await expect(page.locator("#live-state")).to_have_text("Live")
        await expect(page.locator("#step")).to_contain_text("Not answered yet.")
        await page.locator("#step-name").focus()
        (question,) = await job.questions()
        await opened.service.confirmations.decide(question.confirmation, "approve", reason="go on")
        await expect(page.locator("#step")).to_contain_text("go on")
        await expect(page.locator("#step")).to_contain_text("Output")
        await expect(page.locator("#step-name")).to_be_focused()


async def test_sessions_are_read_page_by_page(
    served: Served, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_SESSIONS", 2)
    monkeypatch.setattr(session, "_MOST", 2)
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        made = [await opened.service.sessions.open("http", principal=f"p{number}") for number in range(3)]
        page = await shown.open("/sessions")
        await expect(page.locator("#session-rows tr")).to_have_count(2)
        await page.get_by_role("link", name="Older").click()
        await expect(page.locator("#session-rows tr")).to_have_attribute("id", f"session-{made[0]}")
        await page.get_by_role("link", name="Newest").click()
        await expect(page.locator("#session-rows tr")).to_have_count(2)

        for item in ("milk", "tea", "bread"):
            await opened.call("shop.look", {"item": item})
        rows = await opened.service.sessions.rows(limit=1)
        page = await shown.open(f"/sessions/{rows[0].session}")
        await expect(page.get_by_text("Calls 2 to 3 of 3.")).to_be_visible()
        await page.get_by_role("link", name="Earlier calls").click()
        await expect(page.get_by_text("Calls 1 to 1 of 3.")).to_be_visible()
        await page.get_by_role("link", name="Later calls").click()
        await expect(page.locator("#step-rows tr")).to_have_count(2)


async def test_what_stands_beside_the_word_live_stands_there_on_a_page_without_it(
    served: Served, browser: Browser
) -> None:
    async with (
        remit() as opened,
        served(opened, [token("ann", "admin")]) as server,
        window(browser, server.url) as shown,
    ):
        page = await shown.open("/login")
        await page.get_by_label("Token").fill("secret-ann")
        await page.get_by_role("button", name="Log in").click()
        live = page.locator(".live")
        await expect(live).to_have_text("Live")
        before = await live.evaluate("live => live.offsetWidth")
        await shown.open("/policy")
        await expect(live).to_have_text("")
        assert await live.evaluate("live => live.offsetWidth") == before
