"""A real browser on the pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.dates import DATE_ENV
from tests.patience import PATIENCE_S

AXE = Path(__file__).parents[2] / "build/peers-mcp/npm/node_modules/axe-core/axe.min.js"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first without what a desktop has around its pages: a test takes half the processor time of one in the second."""

expect.set_options(timeout=PATIENCE_S * 1_000)


@cache
def chromium() -> str:
    """The browser; installed with apt if that can be done here. Skips the test if there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    apt = shutil.which("apt-get")
    if found is None and os.geteuid() == 0 and apt:
        subprocess.run([apt, "install", "-y", "-q", NAMES[0]], check=False, capture_output=True)
        found = shutil.which(NAMES[0])
    if found is None:
        pytest.skip(f"needs Chromium: apt-get install {NAMES[0]}")
    return found


class Window:
    """A tab, and everything that went wrong in it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", self._said)

    async def open(self, path: str) -> Page:
        await self.page.goto(self.url + path)
        return self.page

    async def arrived(self, path: str) -> None:
        """Wait until the tab shows a page and its scripts have run: keys that are pressed before are lost."""
        await expect(self.page).to_have_url(self.url + path)
        await self.page.wait_for_load_state()

    def _said(self, message: Any) -> None:
        # What the policy refuses is said here too. A refused form answers 4xx, which is what was wanted.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    async def troubles(self) -> list[str]:
        """What axe-core finds, small things too; evaluated, since the policy lets no other script in."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = await self.page.evaluate(
            "axe.run({resultTypes: ['violations'], selectors: false}).then((results) => results.violations)"
        )
        return [f"{rule['id']}: {node['html']}" for rule in found for node in rule["nodes"]]

    async def width(self) -> int:
        """How wide the page is."""
        found: int = await self.page.evaluate("document.documentElement.scrollWidth")
        return found


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser within the block."""
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        # Chromium loads no page by libfaketime's clock: it has the machine's date.
        env: dict[str, str | float | bool] = {name: value for name, value in os.environ.items() if name not in DATE_ENV}
        browser = await playwright.chromium.launch(executable_path=chromium(), args=arguments, env=env)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def window(browser: Browser, url: str, **more: Any) -> AsyncIterator[Window]:
    """A tab in a context of its own; at its end nothing may have gone wrong in it."""
    # Nothing moves: in the midst of a transition a button of one theme has the background of the other.
    more = {"timezone_id": "Europe/Berlin", "reduced_motion": "reduce", **more}
    context: BrowserContext = await browser.new_context(**more)
    context.set_default_timeout(PATIENCE_S * 1_000)
    # As on a second visit: the first one tells the server the zone, and loads its page once more.
    await context.add_cookies([{"name": "remit-zone", "value": "Europe%2FBerlin", "url": url}])
    shown = Window(await context.new_page(), url)
    try:
        async with asyncio.timeout(
            3.5 * PATIENCE_S
        ):  # says where the test waited: the limit of pytest only that it did
            yield shown
        assert shown.faults == [], shown.faults
    finally:
        await context.close()
