from __future__ import annotations

from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.pages import overview
from remit.tools.meta import Retry
from tests.opened import until_waiting
from tests.pages.conftest import Served

pytestmark = pytest.mark.slow


@tool("shop.look", level="L0", retry=Retry(attempts=3, first_delay_ms=60_000))
def look(item: str) -> str:
    """Fail."""
    raise ConnectionError(f"no answer about {item}")


@recipe("looks")
async def looks(run: Run) -> Any:
    """Look at something."""
    return (await run.call("shop.look", {"item": "milk"})).value


@recipe("waits")
async def waits(run: Run) -> Any:
    """Wait for a signal."""
    return await run.wait_signal("on")


async def test_a_job_that_tries_a_failed_call_again_is_in_trouble(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Remit(":memory:", tools=[look], recipes=[looks, waits]) as opened, served(opened) as browser:
        started = [await opened.start(looks()), await opened.start(waits()), await opened.start(waits())]
        for job in started:
            await until_waiting(opened, job.id)
        page = (await browser.get("/")).text
        trouble = page.partition('id="in-trouble"')[2].partition("</section>")[0]
        assert "Trouble" in trouble
        assert f'href="/jobs/{started[0].id}"' in trouble
        assert ">retrying</span>" in trouble
        assert "open jobs" not in trouble

        monkeypatch.setattr(overview, "_LOOKED_AT", 2)
        assert "0 among the newest 2 open jobs" in (await browser.get("/")).text
