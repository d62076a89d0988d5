"""One browser for many tests: it takes longer to start than most of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from remit.clock import SystemClock
from remit.parts.browser.browsers import Browsers
from remit.parts.browser.program import find
from remit.parts.browser.provider import BrowserProvider
from remit.parts.browser.settings import BrowserSettings
from remit.parts.sandbox.wiring import open_enclosures
from remit.settings import load
from remit.tools.provider import ToolResult
from remit_testing.providers import call_context
from tests.parts.browser.site import Site


@cache
def installed() -> bool:
    """Whether there is a browser; it is installed if that can be done here."""
    apt = shutil.which("apt-get")
    if find("") is None and os.geteuid() == 0 and apt:
        command = [apt, "install", "-y", "-q", "chromium-headless-shell"]
        subprocess.run(command, check=False, capture_output=True)
    return find("") is not None


class Driver:
    """Calls the tools as the gateway does."""

    def __init__(self, provider: BrowserProvider, site: Site, stream: str) -> None:
        self.provider = provider
        self.site = site
        self.stream = stream

    async def result(self, word: str, **args: Any) -> ToolResult:
        return await self.provider.invoke(f"browser.{word}", args, call_context(stream=self.stream))

    async def __call__(self, word: str, **args: Any) -> Any:
        return (await self.result(word, **args)).value

    async def open(self, path: str, **args: Any) -> Any:
        return await self("navigate", url=self.site.url(path), **args)

    async def shown(self, **args: Any) -> str:
        """The snapshot."""
        text: str = (await self("snapshot", **args))["snapshot"]
        return text

    async def ref(self, name: str, **args: Any) -> str:
        """The ref of an element, by its name, in a new snapshot."""
        text = await self.shown(**args)
        found = re.search(rf'"{re.escape(name)}"[^\n]*?\[ref=(p\d+:\w+)\]', text)
        assert found, f"{name} is not in\n{text}"
        return found[1]

    async def told(self, text: str, result: Any) -> str:
        """The note with a text, in this result or in those that follow: what pages do comes in its own time."""
        while True:
            for note in result["notes"]:
                if text in note:
                    return str(note)
            result = await self("wait_for")


Open = Callable[..., BrowserProvider]


class Closing(Browsers):
    """Browsers that close what they run in, as a process does at its end."""

    async def end(self) -> None:
        await super().end()
        await self._enclosures.close()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    if not installed():
        pytest.skip("needs a browser: apt-get install chromium-headless-shell")
    folder: Path = tmp_path_factory.mktemp("browser")

    def make(clock: Any = None, **settings: Any) -> BrowserProvider:
        enclosures = open_enclosures(load(cwd=folder, env={}))
        return BrowserProvider(lambda: Closing(enclosures, BrowserSettings(**settings), clock or SystemClock()))

    return make


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver(opened: Open) -> AsyncIterator[Driver]:
    """Calls the tools in one browser, against a site that may be reached."""
    async with Site().serve() as site:
        provider = opened(
            private=(site.host,),
            hosts=("site.example",),
            secrets=(f"shop=TEST_BROWSER_SECRET@{site.host}", "other=TEST_BROWSER_SECRET@other.example"),
            download_bytes=1_000_000,
            pages=5,
            snapshot_chars=10_000,
        )
        yield Driver(provider, site, "job/one")
        await provider.close()
