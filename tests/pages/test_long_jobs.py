"""A job of more rows than one page shows, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, expect

from remit import Remit, Run, recipe, tool
from remit.pages.job import WINDOW
from tests.pages.browsing import window
from tests.pages.conftest import Served

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
COUNT, FAILED = 1_300, 905
"""Steps, and the one that fails."""


@tool("shop.look", level="L0")
def look(text: str) -> str:
    """Look at something."""
    return text


@tool("shop.see", level="L0")
def see(text: str) -> str:
    """See something."""
    if text == f"item {FAILED}":
        raise ValueError("it is not there")
    return text


@recipe("looks")
async def looks(run: Run) -> int:
    """Look often, at each thing in another way than at the one before; then wait."""
    for number in range(1, COUNT + 1):
        await run.attempt("shop.see" if number % 2 else "shop.look", {"text": f"item {number}"})
    await run.wait_signal("on")
    await run.call("shop.look", {"text": "the end"})
    return COUNT


@pytest.mark.timeout(120)
async def test_a_long_job_is_read_window_by_window(served: Served, browser: Browser) -> None:
    async with (
        Remit(":memory:", tools=[look, see], recipes=[looks]) as opened,
        served(opened) as server,
        window(browser, server.url, viewport={"width": 1280, "height": 900}) as shown,
    ):
        job = await opened.start(looks())
        await opened.service.jobs.settled([job.id])
        page = await shown.open(f"/jobs/{job.id}")
        rows = page.locator("#step-rows tr")
        await expect(rows).to_have_count(WINDOW)
        await expect(page.get_by_text(f"Rows 1 to {WINDOW} of {COUNT + 1}")).to_be_visible()

        await page.get_by_role("link", name="Later steps").click()
        await expect(rows.first).to_have_attribute("id", f"s-{WINDOW + 1}")
        await page.get_by_role("link", name="Earlier steps").click()
        await expect(rows.first).to_have_attribute("id", "s-1")

        strip = page.locator(".strip")
        await expect(strip.locator("rect.failed")).to_have_count(1)
        await expect(strip.locator("rect.wait")).to_have_count(1)
        await page.get_by_text("1 failed:").get_by_role("link").click()
        await expect(rows.first).to_have_attribute("id", f"s-{FAILED}")
        await expect(rows.first).to_contain_text("failed")
        assert await shown.troubles() == []

        box = await page.locator(".strip").bounding_box()
        assert box is not None
        await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        await expect(page).to_have_url(re.compile(r"from=6\d\d$"))

        await page.get_by_label("Find in steps").fill("item 1299")
        await page.keyboard.press("Enter")
        await expect(rows).to_have_count(1)
        await expect(rows.first).to_have_attribute("id", "s-1299")
        await page.get_by_label("Find in steps").fill("no such thing")
        await page.keyboard.press("Enter")
        await expect(rows).to_contain_text("No step matches.")


@pytest.mark.timeout(120)
async def test_the_last_window_of_a_long_job_is_live(served: Served, browser: Browser) -> None:
    async with (
        Remit(":memory:", tools=[look, see], recipes=[looks]) as opened,
        served(opened) as server,
        window(browser, server.url) as shown,
    ):
        job = await opened.start(looks())
        await opened.service.jobs.settled([job.id])
        page = await shown.open(f"/jobs/{job.id}?from={COUNT}")
        rows = page.locator("#step-rows tr")
        await expect(rows).to_have_count(2)
        await expect(page.locator("#live-state")).to_have_text("Live")
        await rows.first.get_by_role("link").focus()
        await job.signal("on")
        await expect(rows).to_have_count(3)
        await expect(rows.nth(1)).to_contain_text("ok")
        await expect(rows.first.get_by_role("link")).to_be_focused()
        await expect(page.locator("h1")).to_contain_text("completed")
