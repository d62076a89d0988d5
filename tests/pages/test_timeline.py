"""The time of a job: a part of it by its address, and one picture in which what a child does lies below it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.pages.timeline import COLUMNS, LANES, WIDTH, Picture, Scale, Span, picture_of, scale_of, window_of
from remit.record.job_story import JobStory
from remit.service.jobs import Jobs
from tests.opened import OpenRemit
from tests.pages.conftest import Served

SECOND = 1_000_000


@pytest.mark.parametrize("x", [0.0, 120.0, 500.0, 980.0, WIDTH])
def test_an_instant_stands_at_its_place_on_a_folded_scale_too(x: float) -> None:
    scale = Scale([Span(0, 5 * SECOND), Span(90 * SECOND, 95 * SECOND)], 0, 100 * SECOND)
    assert scale.folds
    assert scale.at(scale.instant(x)) == pytest.approx(x, abs=0.01)


@pytest.mark.parametrize(
    ("since", "until", "covered"), [(0, 9, False), (0, 10, True), (20, 99, True), (21, 99, False), (15, 11, True)]
)
def test_a_stretch_is_covered_if_a_part_of_it_is_on_the_scale(since: int, until: int, *, covered: bool) -> None:
    assert Scale((), 10, 20).covers(since, until) is covered


@tool("shop.look", level="L0")
def look(item: str) -> str:
    """Look at an item."""
    if item == "none":
        raise RuntimeError("sold out")
    return item


@recipe("inner")
async def inner(run: Run, item: str) -> int:
    """Look at three things at once."""
    await run.gather(*(run.attempt("shop.look", {"item": each}) for each in (item, "none", "tea")))
    return 3


@recipe("outer")
async def outer(run: Run) -> Any:
    """Look, have another recipe look twice, wait."""
    await run.call("shop.look", {"item": "first"})
    await run.child(inner(item="milk"))
    await run.child(inner(item="bread"))
    return await run.wait_signal("on")


async def known(opened: Remit, jobs: Jobs) -> JobStory:
    job = await opened.start(outer())
    await opened.service.jobs.settled([job.id])
    return await jobs.story(job.id, None)


def drawn(story: JobStory, zoom: str = "") -> Picture:
    until = story.story.created_at + 60 * SECOND
    window = window_of(zoom, story.story, until)
    scale = scale_of(story.story, until, fold=False, window=window)
    return picture_of(story.story, story.plain, scale, until)


async def test_what_a_child_does_lies_below_it_and_what_waits_goes_on(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[inner, outer]) as opened:
        picture = drawn(await known(opened, opened.service.jobs))
        children = [bar for bar in picture.bars if bar.kind == "child"]
        assert [bar.name for bar in children] == ["recipe.inner", "recipe.inner"]
        assert {bar.kind for bar in picture.bars if bar.lane > children[0].lane} >= {"failed"}
        assert picture.bars[-1].kind == "wait"
        assert picture.bars[-1].x + picture.bars[-1].width == pytest.approx(WIDTH)
        assert len(picture.columns) == COLUMNS
        assert picture.lanes <= LANES
        assert (picture.earlier, picture.later, picture.wider) == ("", "", "")


async def test_a_part_of_the_time_has_neighbours_and_a_wider_one(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[inner, outer]) as opened:
        picture = drawn(await known(opened, opened.service.jobs), f"{20 * SECOND}-{30 * SECOND}")
        assert [bar.name for bar in picture.bars] == ["wait.signal"]
        assert (picture.earlier, picture.later) == ("10000000-20000000", "30000000-40000000")
        assert picture.wider == "14999999-35000001"
        assert picture.ticks[0] == 20 * SECOND


@pytest.mark.parametrize("zoom", ["", "0-0", "99000000-98000000", "99999999999-999999999999"])
async def test_a_part_that_is_none_is_all_of_it(remit_in: OpenRemit, zoom: str) -> None:
    async with remit_in(tools=[look], recipes=[inner, outer]) as opened:
        story = await known(opened, opened.service.jobs)
        began = story.story.created_at
        assert window_of(zoom, story.story, began + SECOND) == (began, began + SECOND)


@pytest.mark.slow
async def test_the_page_shows_the_steps_of_a_part_and_its_links_keep_it(served: Served, remit_in: OpenRemit) -> None:
    async with remit_in(tools=[look], recipes=[inner, outer]) as opened, served(opened) as browser:
        story = await known(opened, opened.service.jobs)
        whole = (await browser.get(f"/jobs/{story.job}")).text
        zoom = re.findall(r"zoom=(\d+-\d+)", whole)
        assert len(zoom) > COLUMNS
        page = (await browser.get(f"/jobs/{story.job}?zoom=1-2")).text
        assert len(re.findall(r'<tr id="s-', page)) < len(re.findall(r'<tr id="s-', whole))
        assert "All of it" in page
        assert 'name="zoom" value="1-2"' in page
        assert (await browser.get(f"/jobs/{story.job}?zoom=1-x")).status == 400
