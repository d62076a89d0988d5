"""Take pictures of the console and of a report for the documentation: `make screenshots` writes them to docs/images."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page

from examples.web.town import Town
from remit import Remit, Run, recipe, tool
from remit.parts.recipes.research_report import research_report
from remit.settings import load
from remit.tools.meta import Retry
from tests.pages.browsing import browsing, window
from tests.pages.conftest import serving

IMAGES: Final = Path(__file__).parents[1] / "docs/images"
_WIDTH: Final = 1280
_HEIGHTS: Final = {"job": 1240}
"""An opened step is as high as its window at most."""
_HEIGHT: Final = 860
_QUESTION: Final = "When does the swimming pool open, and what does it cost?"
_tries: list[str] = []


@tool("shop.stock", level="L0", retry=Retry(attempts=3, first_delay_ms=400))
def stock(item: str) -> dict[str, Any]:
    """Say how many of an item there are."""
    if item == "tea" and not _tries:
        _tries.append(item)
        raise ConnectionError("the shop did not answer")
    return {"item": item, "stock": 3 * len(item)}


@tool("shop.order")
def order(item: str, count: int, note: str = "") -> dict[str, Any]:
    """Order an item."""
    return {"ordered": item, "count": count, "note": note}


@tool("shop.print", level="L0")
def slip(text: str) -> str:
    """Print a delivery slip."""
    raise RuntimeError(f"the printer is out of paper: {text}")


@recipe("restock")
async def restock(run: Run, items: list[str]) -> dict[str, Any]:
    """Look at what there is and order what is short."""
    counts = [(await run.call("shop.stock", {"item": item})).value for item in items]
    await run.sleep(2)
    await run.gather(*(run.call("shop.stock", {"item": f"{items[0]} {size}"}) for size in ("small", "large")))
    done = await run.call("shop.order", {"item": items[0], "count": 12, "note": "For Monday; ring at the back door."})
    return {"seen": counts, "order": done.value}


@recipe("inventory")
async def inventory(run: Run, shelves: int) -> int:
    """Count every shelf."""
    for shelf in range(shelves):
        await run.call("shop.stock", {"item": f"shelf {shelf}"})
    return shelves


@recipe("deliver")
async def deliver(run: Run, address: str) -> str:
    """Print a slip and wait for the driver."""
    await run.attempt("shop.stock", {"item": address})
    text: str = (await run.call("shop.print", {"text": address})).value
    return text


@recipe("pick_up")
async def pick_up(run: Run) -> Any:
    """Wait for the driver."""
    return await run.wait_signal("driver_is_here")


async def main() -> None:
    """Run a few jobs, and photograph the pages."""
    settings = load(cwd=IMAGES, file=None, env={}, flags={"journal.url": ":memory:", "app.principal": "ada"})
    shop = Remit(settings=settings, tools=[stock, order, slip], recipes=[restock, inventory, deliver, pick_up])
    async with shop as remit, serving(remit) as server:
        await (await remit.start(inventory(shelves=40)))
        failed = await remit.start(deliver(address="12 Mill Lane"))
        waiting = await remit.start(pick_up())
        job = await remit.start(restock(items=["milk", "bread", "tea"]))
        await remit.service.jobs.settled([failed.id, waiting.id, job.id])
        (question,) = await job.questions()
        pages = {
            "overview": "/",
            "jobs": "/jobs",
            "job": f"/jobs/{job.id}?step=3",
            "inbox": f"/inbox/{question.confirmation}",
        }
        async with browsing() as browser:
            for name, path in pages.items():
                for theme in ("light", "dark"):
                    size = {"width": _WIDTH, "height": _HEIGHTS.get(name, _HEIGHT)}
                    more = {"color_scheme": theme, "viewport": size, "reduced_motion": "reduce"}
                    async with window(browser, server.url, **more) as shown:
                        await _picture(await shown.open(path), IMAGES / f"{name}-{theme}.png")


async def report() -> None:
    """Report on the town of the examples, and photograph the page with a quotation opened."""
    town = Town()
    runner = await town.start(8899)
    flags = {"journal.url": ":memory:", "web.search": ("searxng",), "web.searxng_url": town.base, "web.pause_ms": 1}
    async with Remit(settings=load(cwd=IMAGES, file=None, env={}, flags=flags)) as remit, browsing() as browser:
        job = await remit.start(research_report(_QUESTION, web=True, max_sources=4))
        await job
        artifact = (await remit.service.artifacts.rows(job.id))[-1]
        text = (await remit.service.artifacts.read(job.id, artifact.sha256)).decode()
        for theme in ("light", "dark"):
            more = {"color_scheme": theme, "viewport": {"width": 900, "height": 900}, "reduced_motion": "reduce"}
            async with window(browser, town.base, **more) as shown:
                await shown.page.set_content(text)
                await shown.page.hover("#c1")
                await shown.page.locator("#c1 .card").wait_for()
                await shown.page.screenshot(path=IMAGES / f"report-{theme}.png")
                print(f"report-{theme}.png")
    await runner.cleanup()


async def _picture(page: Page, path: Path) -> None:
    await page.locator("#live-state[data-state=live]").wait_for()
    await page.screenshot(path=path, full_page=True)
    print(path.name)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    asyncio.run(main())
    asyncio.run(report())
