"""Pages on a phone, in a browser: lists come first, and what narrows them is a touch away."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from remit import Remit, Run, recipe
from tests.pages.browsing import window
from tests.pages.conftest import Served

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@recipe("milk")
async def milk(run: Run) -> None:
    """Do nothing."""


@pytest.mark.parametrize("path", ["/inbox"])
@pytest.mark.parametrize(("width", "folded"), [(390, True), (1280, False)])
async def test_a_filter_is_folded_where_there_is_no_room(
    served: Served, browser: Browser, path: str, width: int, folded: bool
) -> None:
    async with (
        Remit(":memory:", recipes=[milk], policy=[]) as opened,
        served(opened) as server,
        window(browser, server.url, viewport={"width": width, "height": 800}) as shown,
    ):
        await opened.run(milk())
        page = await shown.open(path)
        field = page.locator(".fold input[name=recipe]")
        await expect(field).to_be_visible(visible=not folded)
        await expect(page.locator(".fold > summary")).to_be_visible(visible=folded)
        if folded:
            await page.locator(".fold > summary").click()
            await expect(field).to_be_visible()
        assert await shown.width() <= width
