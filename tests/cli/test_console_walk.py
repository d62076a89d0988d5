"""The first day of a newcomer, as docs/console.md tells it: its words are followed in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.cli.conftest import Project
from tests.pages.browsing import browsing, window
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs/console.md"
WALK = re.compile(
    r"after `remit (\w+)` and `remit (\w+)`: \*(.+?)\* → \*(.+?)\* → `(\w+)` for the (\w+) `(\w+)`; "
    r"\*(.+?)\* → \*(.+?)\*; the job's \*(.+?)\* names you"
)


async def test_the_first_day_goes_as_the_page_says(project: Project) -> None:
    found = WALK.search(" ".join(PAGE.read_text(encoding="utf-8").split()))
    assert found is not None
    made, served, jobs, start, recipe, field, value, answer, approve, deeds = found.groups()
    assert project.here(made, "desk").status == 0
    project.folder = project.folder / "desk"
    with project.start(served, "--port", "0") as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            async with browsing() as chromium, window(chromium, address) as shown:
                page = await shown.open("/")
                await page.get_by_role("navigation", name="Pages").get_by_role("link", name=jobs).click()
                await page.get_by_role("link", name=start).click()
                await page.get_by_role("link", name=recipe).click()
                await page.get_by_label(field).fill(value)
                await page.get_by_role("button", name="Start").click()
                await page.get_by_role("link", name=answer).click()
                await page.get_by_role("button", name=approve).click()
                await expect(page.get_by_role("status")).to_contain_text("approved")
                await page.get_by_role("link", name="Look at it").click()
                await page.get_by_role("link", name=re.compile(f"of {recipe}")).first.click()
                await expect(page.get_by_role("heading", name=deeds)).to_be_visible()
                await expect(page.locator("#what-it-did")).to_contain_text("approved by")
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)
