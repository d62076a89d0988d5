"""docs/web.md: a page is fetched, and its main text extracted."""

import asyncio

from here import web

from remit import Remit
from remit.settings import load


async def main(host: str) -> None:
    """Read the page in two ways."""
    settings = load(env={}, search=False, flags={"web.private": [host]})
    async with Remit("jobs.db", settings=settings) as remit:
        for tool in ("web.fetch", "web.extract"):
            outcome = await remit.call(tool, {"url": f"http://{host}/"})
            assert outcome.status == "ok", outcome
            assert "two tides a day" in outcome.value["text"], outcome


with web() as host:
    asyncio.run(main(host))
