"""The pages by keyboard alone: everything is reached with Tab, and keys lead to pages and rows."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Browser, Route, expect

from tests.pages.browsing import window
from tests.pages.conftest import Served
from tests.pages.test_browser import filled, looks, orders, remit

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
REACHABLE = """() => {
    const seen = (one) => one.checkVisibility({visibilityProperty: true}) && one.getClientRects().length > 0;
    const all = [...document.querySelectorAll(
        'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')];
    const wanted = all.filter((one) => one.tabIndex >= 0 && !one.disabled && seen(one) && !one.closest('dialog')
        && !(one.type === 'radio' && !one.checked));
    window.unreached = new Set(wanted);
    document.addEventListener('focusin', (event) => window.unreached.delete(event.target));
    return wanted.length;
}"""
"""Notes everything that can be used on a page and has not had the focus; how much it is."""


LATE = """{
    const wait = window.setTimeout;
    window.setTimeout = (act, ms, ...given) => wait(act, document.readyState === "complete" ? ms : 1e6, ...given);
}"""
"""A busy machine: what a page does in a timer while it loads comes when it has long been used."""


@pytest.mark.timeout(240)
async def test_everything_on_every_page_is_reached_with_tab(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        await shown.page.add_init_script("delete window.EventSource")  # the numbers are to stay
        for path in await filled(opened):
            page = await shown.open(path)
            await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            for _ in range(await page.evaluate(REACHABLE) + 2):
                await page.keyboard.press("Tab")
            assert await page.evaluate("[...unreached].map((element) => element.outerHTML)") == [], path


async def test_keys_lead_to_pages_rows_and_search(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        jobs = [(await opened.start(looks(count=1))).id for _ in range(2)]
        await opened.service.jobs.settled(jobs)
        await shown.page.clock.set_fixed_time(1_000)  # the key after "g" is to come in time however long it takes
        page = await shown.open("/")
        await page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keys")
        await expect(dialog).to_be_visible()
        await expect(dialog.get_by_role("link", name="Inbox")).to_be_visible()
        assert await shown.troubles() == []
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await page.keyboard.press("g")
        await page.keyboard.press("j")
        await shown.arrived("/jobs")
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await expect(page.locator("#rows th a").nth(1)).to_be_focused()
        await page.keyboard.press("k")
        await expect(page.locator("#rows th a").first).to_be_focused()
        await page.keyboard.press("Enter")
        await shown.arrived(f"/jobs/{jobs[1]}")
        await page.keyboard.press("f")
        search = page.get_by_label("Find in steps")
        await expect(search).to_be_focused()
        await page.keyboard.type("gj?k/")
        await expect(search).to_have_value("gj?k/")
        await expect(dialog).to_be_hidden()
        await page.keyboard.press("Escape")
        await page.keyboard.press("g")
        await page.keyboard.press("p")
        await shown.arrived("/policy")
        await page.keyboard.press("/")
        await expect(page.get_by_label("Search everywhere")).to_be_focused()
        await page.keyboard.type(f"{jobs[0][-6:]} 1")
        await page.keyboard.press("Enter")
        await shown.arrived(f"/jobs/{jobs[0]}?step=1")


@pytest.mark.parametrize("before", ["", LATE], ids=["at once", "with late timers"])
async def test_a_step_is_opened_and_closed_and_the_focus_follows(served: Served, browser: Browser, before: str) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        await shown.page.add_init_script(before)
        job = await opened.start(looks(count=1))
        await job
        page = await shown.open(f"/jobs/{job.id}")
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(page.locator("#step-name")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.locator("#step-name")).to_have_count(0)
        await expect(page.locator("#step-rows a").nth(1)).to_be_focused()


async def test_a_step_that_is_long_in_coming_says_so(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        job = await opened.start(looks(count=1))
        await job
        page = await shown.open(f"/jobs/{job.id}")
        answer = asyncio.Event()

        async def hold(route: Route) -> None:
            await answer.wait()
            await route.continue_()

        await page.route(re.compile(r"step=1\b"), hold)
        link = page.locator("#step-rows a").first
        await link.click()
        await expect(link).to_have_class(re.compile("htmx-request"))
        assert "loading" in await link.evaluate("(one) => getComputedStyle(one, '::after').content")
        answer.set()
        await expect(page.locator("#step")).to_be_visible()
        await expect(page.locator(".htmx-request")).to_have_count(0)


async def test_keys_can_be_turned_off_and_nothing_approves_by_a_key(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        job = await opened.start(orders(item="milk"))
        await opened.service.jobs.settled([job.id])
        (question,) = await job.questions()
        page = await shown.open(f"/inbox/{question.confirmation}")
        for key in "abcdefhilmnopqrstuvwxyzAY ":
            await page.keyboard.press(key)
        assert (await opened.service.confirmations.view(question.confirmation)).state == "pending"
        await page.get_by_role("button", name="Keys").click()
        await page.get_by_label("Use these keys").uncheck()
        await page.get_by_role("button", name="Close").click()
        for path in (f"/inbox/{question.confirmation}", "/jobs"):
            await shown.open(path)
            await page.keyboard.press("?")
            await page.keyboard.press("g")
            await page.keyboard.press("o")
            await expect(page.get_by_role("dialog")).to_be_hidden()
            assert page.url == server.url + path
