"""docs/browser.md: a page is opened in the system's Chromium, and read."""

import asyncio

from here import web

from remit import Remit
from remit.settings import load

RULE = {"id": "browser", "effect": "allow", "tools": ["browser.*"]}


async def main(host: str) -> None:
    """Open the page, and close the browser."""
    flags = {"browser.hosts": [host], "browser.private": [host]}
    async with Remit("jobs.db", settings=load(env={}, search=False, flags=flags), policy=[RULE]) as remit:
        opened = await remit.call("browser.navigate", {"url": f"http://{host}/"})
        assert opened.status == "ok", opened
        assert opened.value["title"] == "Tides", opened
        read = await remit.call("browser.extract", {})
        assert "two tides a day" in str(read.value), read
        await remit.call("browser.close", {})


with web() as host:
    asyncio.run(main(host))
