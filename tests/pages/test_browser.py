"""Every page in a real browser: usable by everybody, at any width, in both themes, untouched by what others wrote."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, expect

from remit import Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.pages.table import PAGES
from remit.service.options import Options
from remit_testing.clock import ManualClock
from tests.pages.browsing import window
from tests.pages.conftest import Served, token
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

ROUNDS = int(os.environ.get("REMIT_TEST_ROUNDS", "1"))

ATTACKS = (
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "\"'><svg/onload=window.hit=1>",
    "{{ 7*7 }}{% for x in y %}",
    "</style><style>body{display:none}</style>",
    "x\r\nSet-Cookie: hit=1\r\n\r\n<script>window.hit=1</script>",
    "\u202edrowssap\u2066\u200b\u00ad\ufeff\x00\x1b[2J",
    "<!--live--><!--/live-->",
    'id="head" data-live="whole"><!--live-->',
    "javascript:window.hit=1",
    '" hx-get="/logout" hx-trigger="load" x="',
)


@tool("shop.look", level="L0")
def look(text: str, more: dict[str, Any] | None = None) -> Any:
    """Look at something."""
    return {"text": text, "more": more}


@tool("shop.break", level="L0")
def broken(text: str) -> Any:
    """Fail."""
    raise ValueError(text)


@tool("shop.order")
def order(item: str, count: int = 1, fast: bool = False, note: str = "") -> str:
    """Order an item."""
    return f"{count} {item} {fast} {note}"


@recipe("looks")
async def looks(run: Run, count: int) -> int:
    """Look often, also in branches, and draw numbers."""
    await run.gather(*(run.call("shop.look", {"text": str(number)}) for number in range(3)))
    for number in range(count):
        await run.call("shop.look", {"text": str(number)})
    await run.uuid()
    return count


@recipe("orders")
async def orders(run: Run, item: str) -> Any:
    """Order something."""
    await run.call("shop.look", {"text": item})
    return (await run.call("shop.order", {"item": item, "note": "a long note " * 20})).value


@recipe("attacks")
async def attacks(run: Run, texts: list[str]) -> Any:
    """Do what an attacker would like to be shown."""
    for text in texts:
        await run.call("shop.look", {"text": text})
    await run.call("shop.look", {"text": "x" * 1_000_000})
    await run.call("shop.look", {"text": "wide", "more": {f"column{number}": number for number in range(10_000)}})
    await run.attempt("shop.break", {"text": "".join(texts)})
    return (await run.call("shop.order", {"item": "".join(texts), "note": "y" * 100_000})).value


def remit() -> Remit:
    return Remit(":memory:", tools=[look, broken, order], recipes=[looks, orders, attacks])


async def filled(opened: Remit) -> list[str]:
    """Jobs of many sorts; the addresses of every page that shows them."""
    done = await opened.start(looks(count=12))
    await done
    asking = await opened.start(orders(item="milk"))
    failed = await opened.start(attacks(texts=["plain"]))
    await opened.service.jobs.settled([asking.id, failed.id])
    (question,) = await asking.questions()
    fixed = [page.path for page in PAGES if page.method == "GET" and not {"{", "."} & {*page.path}]
    return [
        *fixed,
        "/jobs?state=failed",
        "/bulk?action=cancel",
        f"/jobs/{done.id}",
        f"/jobs/{asking.id}?step=1",
        f"/jobs/{asking.id}?step=2",
        f"/jobs/{failed.id}?step=4",
        f"/jobs/{done.id}/events",
        f"/inbox/{question.confirmation}",
        "/nothing",
    ]


BOXES = """() => [...document.querySelectorAll("table")].flatMap((table) => {
    const walk = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    const out = [];
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        if (!node.data.trim() || node.parentElement.closest(".hidden, caption, pre, .note")) continue;
        const head = node.parentElement.closest("thead");
        if (head && getComputedStyle(head).position === "absolute") continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const outer = (node.parentElement.closest("td, th") ?? table).getBoundingClientRect();
        for (const box of range.getClientRects())
            if (box.right > outer.right + 0.5 || box.left < outer.left - 0.5) out.push(node.data.trim());
    }
    return out;
})"""
"""Texts that reach beyond their cell, but those that are hidden, or cut with an ellipsis."""
WIDTHS = (390, 1024, 1280, 1440, 1920)
LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("dark", 320), ("light", 768), ("light", 1440))
"""A theme and a width; each page is looked at in as many of them as there are rounds, the next one in the next."""


@pytest.mark.timeout(240)
async def test_pages_keep_nobody_out_and_no_text_leaves_its_cell(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        for number, path in enumerate(await filled(opened)):
            page = await shown.open(path)
            assert await page.locator("h1").count() == 1, path
            for round_ in range(min(ROUNDS, len(LOOKS))):
                theme, width = LOOKS[(number + round_) % len(LOOKS)]
                await page.emulate_media(color_scheme=theme)
                await page.set_viewport_size({"width": width, "height": 800})
                assert await shown.troubles() == [], (path, theme, width)
                assert await shown.width() <= width, path
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 800})
                assert await page.evaluate(BOXES) == [], (path, width)


async def test_the_form_to_log_in_keeps_nobody_out(served: Served, browser: Browser) -> None:
    async with (
        remit() as opened,
        served(opened, [token("ann", "read")]) as server,
        window(browser, server.url, color_scheme="dark", viewport={"width": 320, "height": 800}) as shown,
    ):
        page = await shown.open("/jobs")
        assert await shown.troubles() == []
        await page.get_by_label("Token").fill("wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_have_text("The request has no valid token.")
        assert await shown.troubles() == []
        await page.get_by_label("Token").fill("secret-ann")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        assert await shown.troubles() == []


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
async def test_a_question_is_answered_with_the_keyboard_alone(
    served: Served, browser: Browser, *, scripts: bool
) -> None:
    async with (
        remit() as opened,
        served(opened) as server,
        window(browser, server.url, java_script_enabled=scripts) as shown,
    ):
        job = await opened.start(orders(item="milk"))
        await opened.service.jobs.settled([job.id])
        page = await shown.open("/")
        await page.get_by_role("link", name="shop.order").focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="What will happen")).to_be_visible()
        await page.get_by_role("button", name="Approve once").focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("shop.order")
        assert (await job).startswith("1 milk")


async def test_an_edit_is_typed_judged_and_approved(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        job = await opened.start(orders(item="milk"))
        await opened.service.jobs.settled([job.id])
        (question,) = await job.questions()
        page = await shown.open(f"/inbox/{question.confirmation}")
        await page.get_by_text("Edit the arguments").click()
        await page.get_by_label("count").fill("7")
        await page.get_by_label("fast").select_option("true")
        await page.get_by_label("note").fill("two\nlines")
        await page.get_by_role("button", name="Ask with these arguments").click()
        await expect(page.get_by_role("heading", name="What was edited")).to_be_visible()
        await page.get_by_role("button", name="Approve once").click()
        assert await job == "7 milk True two\nlines"


async def test_the_first_page_is_in_the_readers_zone_too(served: Served, browser: Browser) -> None:
    clock = ManualClock(1_767_225_600_000_000)  # 2026-01-01T00:00:00Z
    async with remit() as opened, served(opened, clock=clock) as server:
        context = await browser.new_context(timezone_id="Asia/Tokyo")
        context.set_default_timeout(PATIENCE_S * 1_000)
        page = await context.new_page()
        _ = await opened.start(orders(item="milk"))
        async with page.expect_event("load"):
            await page.goto(f"{server.url}/jobs", wait_until="commit")
        await expect(page.locator("#rows time").first).to_have_attribute("title", re.compile("JST"))
        await context.close()


async def test_a_job_is_cancelled_from_its_page(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        job = await opened.start(orders(item="milk"))
        await opened.service.jobs.settled([job.id])
        page = await shown.open(f"/jobs/{job.id}")
        await page.get_by_text("Cancel", exact=True).click()
        await page.get_by_label("Reason").fill("changed my mind")
        await page.get_by_role("button", name="Cancel this job").click()
        await expect(page.locator("h1")).to_contain_text("cancelled")
        await expect(page.locator(".why")).to_contain_text("changed my mind")
        await page.get_by_role("button", name="Replay").click()
        await expect(page.get_by_role("heading", name="Replay")).to_be_visible()


async def test_a_hostile_job_changes_nothing(served: Served, browser: Browser) -> None:
    async with remit() as opened, served(opened) as server, window(browser, server.url) as shown:
        labels = {"team": ATTACKS[0], "x" + ATTACKS[2]: ATTACKS[6]}
        job = await opened.start(attacks(texts=list(ATTACKS)), Options(title=ATTACKS[1] + ATTACKS[6], labels=labels))
        await opened.service.jobs.settled([job.id])
        (question,) = await job.questions()
        count = len((await opened.service.jobs.view(job.id)).steps)
        steps = [f"/jobs/{job.id}?step={step}" for step in range(1, count + 1)]
        asked = f"/inbox/{question.confirmation}"
        for path in ("/", "/jobs", "/inbox", f"/jobs/{job.id}", *steps, f"/jobs/{job.id}/events", asked):
            page = await shown.open(path)
            await expect(page.locator("h1")).to_be_visible()
            assert await page.evaluate("window.hit") is None, path
            swaps = path.startswith("/jobs/") and not path.endswith("/events")
            assert await page.evaluate("document.querySelectorAll('script').length") == 2 + swaps, path
            assert await shown.width() <= 1280, path
            text = await page.locator("body").inner_text()
            assert [char for char in "\u202e\u2066\u200b\ufeff\x1b" if char in text] == [], path
            assert [one["name"] for one in await page.context.cookies() if "remit" not in one["name"]] == []
        page = await shown.open(asked)
        whole = await page.locator("#args").inner_text()
        assert "y" * 100_000 in whole
        assert all(attack.split("\r")[0].split("\u202e")[0].replace('"', '\\"') in whole for attack in ATTACKS)
        await page.get_by_text("Edit the arguments").click()
        await page.get_by_label("count").fill("2")
        await page.get_by_role("button", name="Ask with these arguments").click()
        await expect(page.get_by_role("heading", name="What was edited")).to_be_visible()
        await page.get_by_role("button", name="Approve once").click()
        async with asyncio.timeout(PATIENCE_S):
            result = await job
        assert result == f"2 {''.join(ATTACKS)} False {'y' * 100_000}"


AGES_S = (61, 101, 59 * 60 + 59, 23 * 3_600 + 59 * 60, 399 * 86_400 + 23 * 3_600)
"""Ages of a job that are written with as many characters as can be."""


@pytest.mark.timeout(240)
async def test_no_age_leaves_its_cell(served: Served, browser: Browser) -> None:
    clock = ManualClock(SystemClock().now())
    async with (
        remit() as opened,
        served(opened, clock=clock) as server,
        window(browser, server.url) as shown,
    ):
        _, before = await filled(opened), 0
        for age in AGES_S:
            clock.advance(age - before)
            before = age
            for path in ("/", "/jobs", "/agents", "/inbox"):
                page = await shown.open(path)
                for width in WIDTHS:
                    await page.set_viewport_size({"width": width, "height": 800})
                    assert await page.evaluate(BOXES) == [], (path, age, width)
