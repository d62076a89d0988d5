"""The five things that a team does all day, in a browser: counted as docs/console.md says they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from remit import Remit, Run, recipe, tool
from remit.settings import load
from tests.pages.browsing import browsing, window
from tests.pages.conftest import Served

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs/console.md"
STEPS: list[dict[str, Any]] = [
    {"say": "I pay it back.", "call": [{"tool": "pay.refund", "args": {"order": "A-9", "cents": 1}}]},
    {"say": "Done."},
]


@tool("pay.refund")
def refund(order: str, cents: int) -> str:
    """Give money back."""
    if cents == 13:
        raise ValueError("the card was closed")
    return f"{order} {cents}"


def refunds(version: str = "1") -> Any:
    @recipe("refund", version=version)
    async def refunds(run: Run, order: str, cents: int) -> str:
        """Refund an order."""
        return str((await run.call("pay.refund", {"order": order, "cents": cents})).value)

    return refunds


REFUNDS = refunds()


class Hand:
    """A person's hand, which counts what it does."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0
        self.texts = 0

    async def click(self, place: Locator) -> None:
        self.clicks += 1
        await place.click()

    async def type(self, place: Locator, text: str, *, enter: bool = False) -> None:
        self.texts += 1
        await place.fill(text)
        if enter:
            await place.press("Enter")

    async def link(self, name: str) -> None:
        await self.click(self.page.get_by_role("link", name=name).first)

    async def button(self, name: str) -> None:
        await self.click(self.page.get_by_role("button", name=name).first)

    def is_as_documented(self, task: str) -> None:
        """Compare the counts with the row of a task."""
        row = next(line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {task} |"))
        counts = f"{self.clicks} click{'s' * (self.clicks != 1)}{', a text' * self.texts}"
        assert row.split("|")[2].strip().startswith(f"{counts},"), (counts, row)


def remit(folder: Path, rules: Any, program: Any = REFUNDS) -> Remit:
    (folder / "s.json").write_text(json.dumps(STEPS))
    flags = {
        "models.default": "scripted:s.json",
        "models.prices": [{"model": "scripted:*", "input": 1_000, "output": 1_000}],
        "policy.rules": rules,
        "journal.url": str(folder / "journal.db"),
        "jobs.drain_seconds": 0,
    }
    settings = load(cwd=folder, file=None, env={}, flags=flags)
    return Remit(settings=settings, tools=[refund], recipes=[program])


@asynccontextmanager
async def handed(served: Served, opened: Remit) -> AsyncIterator[Hand]:
    async with (
        served(opened) as server,
        browsing() as chromium,
        window(chromium, server.url, viewport={"width": 1280, "height": 900}) as shown,
    ):
        yield Hand(await shown.open("/"))


ALLOW = [{"id": "all", "effect": "allow", "tools": ["*"]}]


async def test_the_refund_that_failed_is_found(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, ALLOW) as opened, handed(served, opened) as hand:
        jobs = [(await opened.start(REFUNDS(order=f"A-{cents}", cents=cents))).id for cents in (12, 13, 14)]
        await opened.service.jobs.settled(jobs)
        await hand.link("Jobs")
        await hand.type(hand.page.get_by_label("Filter"), "state:failed recipe:refund since:2d", enter=True)
        await expect(hand.page.locator("#rows tr")).to_have_count(1)
        await hand.click(hand.page.locator("#rows th a"))
        await expect(hand.page.locator(".why")).to_contain_text("the card was closed")
        assert jobs[1] in hand.page.url
        hand.is_as_documented("find the refund that failed yesterday")


async def test_forty_questions_are_answered(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, []) as opened, handed(served, opened) as hand:
        jobs = [(await opened.start(REFUNDS(order=f"A-{number}", cents=number + 20))).id for number in range(40)]
        await opened.service.jobs.settled(jobs)
        await hand.link("Inbox")
        await hand.click(hand.page.get_by_label("All 40 of pay.refund"))
        await hand.button("Approve…")
        await hand.type(hand.page.get_by_label("Type 40 to confirm"), "40")
        await hand.button("Approve")
        await expect(hand.page.get_by_role("heading", level=1)).to_contain_text("40")
        hand.is_as_documented("answer 40 questions")
        assert [(await opened.service.confirmations.pending()), len(jobs)] == [[], 40]


async def test_what_cost_so_much_is_found(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, ALLOW) as opened, handed(served, opened) as hand:
        job = await opened.service.jobs.start_named("agent", {"task": "Pay A-9 back.", "tools": ["pay.*"]})
        await opened.service.jobs.settled([job])
        await hand.link("Agents")
        await hand.link("Usage")
        await hand.click(hand.page.get_by_text("job", exact=True))
        await hand.button("Show")
        await hand.click(hand.page.locator("th[scope=row] a").first)
        await expect(hand.page.get_by_text("2 requests")).to_be_visible()
        assert job in hand.page.url
        hand.is_as_documented("why did it cost so much")


async def test_what_an_agent_did_to_the_world_is_seen(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, ALLOW) as opened, handed(served, opened) as hand:
        job = await opened.service.jobs.start_named("agent", {"task": "Pay A-9 back.", "tools": ["pay.*"]})
        await opened.service.jobs.settled([job])
        await hand.link("Agents")
        await hand.click(hand.page.locator("table.jobs tbody th a").first)
        await hand.link("Every step of the job")
        await expect(hand.page.locator(".deeds")).to_contain_text("pay.refund")
        hand.is_as_documented("what did this agent do today")


async def test_jobs_that_a_new_version_strands_are_seen(served: Served, tmp_path: Path) -> None:
    async with remit(tmp_path, []) as opened:
        job = await opened.start(REFUNDS(order="A-1", cents=20))
        await opened.service.jobs.settled([job.id])
    async with remit(tmp_path, [], program=refunds("2")) as opened, handed(served, opened) as hand:
        await hand.link("More")
        await hand.link("Versions")
        row = hand.page.get_by_role("row").filter(has_text="recipe refund")
        await expect(row).to_contain_text("missing")
        await expect(row.get_by_role("link")).to_have_attribute("href", f"/jobs/{job.id}")
        hand.is_as_documented("which jobs does a new version strand")
