"""The browser: started, and looked at, through the sandbox and the tools, beside bare Playwright."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.lab import Lab
from bench.measure import Reading, Result, Watch, against
from remit.clock import SystemClock
from remit.parts.sandbox.wiring import open_enclosures
from remit.settings import load
from remit_testing.providers import call_context

STARTS, SNAPSHOTS = 3, 20
LINKS = 200


def _program() -> str:
    """The browser; empty: there is none, and nothing is measured."""
    from remit.parts.browser.program import find  # noqa: PLC0415 - beside what it needs

    return str(find("") or "")


def _skipped(name: str) -> list[Result]:
    note = "skipped: there is no browser (apt install chromium-headless-shell)"
    return [Result(name=name, value=math.nan, unit="ms", note=note)]


def _page() -> str:
    return "<h1>Links</h1>" + "".join(f"<a href='/{number}'>link {number}</a>" for number in range(LINKS))


@asynccontextmanager
async def _tools(lab: Lab) -> AsyncIterator[Any]:
    """Browsers of the tools, of which none is started."""
    from remit.parts.browser.browsers import Browsers  # noqa: PLC0415 - an extra
    from remit.parts.browser.settings import BrowserSettings  # noqa: PLC0415 - likewise

    enclosures = open_enclosures(load(cwd=lab.folder, env={}))
    browsers = Browsers(enclosures, BrowserSettings(), SystemClock())
    yield browsers
    await browsers.end()
    await enclosures.close()


@asynccontextmanager
async def _bare() -> AsyncIterator[Any]:
    from playwright.async_api import async_playwright  # noqa: PLC0415 - an extra

    async with async_playwright() as playwright:
        yield playwright


async def _opened(browsers: Any) -> Any:
    """A page of the tools, with something on it."""
    conversation = await browsers._of("bench", opens=True)  # noqa: SLF001 - what navigate does first
    tab = await conversation.new_tab()
    await tab.page.set_content(_page())
    return tab


async def browser_started(lab: Lab) -> list[Result]:
    """A browser with a page, started and closed."""
    name, program = "browser: start, snapshot, close", _program()
    if not program:
        return _skipped(name)

    async def sample() -> Reading:
        async with _tools(lab) as browsers:
            await browsers._driver()  # noqa: SLF001 - as above
            watch = Watch()
            for _ in range(STARTS):
                await _opened(browsers)
                await browsers.act("snapshot", _asked(), call_context(stream="bench"))
                conversation = browsers._conversations.pop("bench")  # noqa: SLF001 - closed without the last one's end
                await conversation.browser.close()
            return watch.millis(STARTS)

    async def floor() -> Reading:
        async with _bare() as playwright:
            watch = Watch()
            for _ in range(STARTS):
                browser = await playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
                page = await browser.new_page()
                await page.set_content(_page())
                await page.aria_snapshot(mode="ai")
                await browser.close()
            return watch.millis(STARTS)

    return await against(name, "ms", sample, floor, "floor: bare Playwright, no sandbox")


async def browser_seen(lab: Lab) -> list[Result]:
    """A snapshot of a page with 200 links."""
    name, program = "browser: a snapshot of 200 links", _program()
    if not program:
        return _skipped(name)

    async def sample() -> Reading:
        async with _tools(lab) as browsers:
            await _opened(browsers)
            watch = Watch()
            for _ in range(SNAPSHOTS):
                await browsers.act("snapshot", _asked(), call_context(stream="bench"))
            return watch.millis(SNAPSHOTS)

    async def floor() -> Reading:
        async with _bare() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
            page = await browser.new_page()
            await page.set_content(_page())
            watch = Watch()
            for _ in range(SNAPSHOTS):
                await page.aria_snapshot(mode="ai")
            times = watch.millis(SNAPSHOTS)
            await browser.close()
            return times

    return await against(name, "ms", sample, floor, "floor: bare Playwright")


def _asked() -> Any:
    from remit.parts.browser.shapes import SnapshotArgs  # noqa: PLC0415 - likewise

    return SnapshotArgs()
