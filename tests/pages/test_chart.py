from __future__ import annotations

import re

import pytest

from remit import Remit, Run, recipe
from remit.journal.event import StreamTally
from remit.pages.chart import BOUNDS, HEIGHT, HOUR, HOURS, by_hour, by_length, first_hour
from remit_testing.clock import START
from tests.pages.conftest import Served

pytestmark = pytest.mark.slow


def test_the_last_of_the_hours_is_the_one_that_goes_on() -> None:
    since = first_hour(START)
    assert since % HOUR == 0
    assert since + (HOURS - 1) * HOUR <= START < since + HOURS * HOUR


def test_every_job_stands_in_its_hour_by_its_state() -> None:
    tallies = [
        StreamTally(0, "completed", 0, 6),
        StreamTally(0, "completed", 3, 2),
        StreamTally(0, "failed", 1, 2),
        StreamTally(23, "waiting", None, 1),
        StreamTally(23, "running", None, 4),
    ]
    chart = by_hour(tallies, 7 * HOUR)
    assert (chart.total, chart.failed, chart.most) == (15, 2, 10)
    first, last = chart.columns[0], chart.columns[-1]
    assert (first.since, last.since) == (7 * HOUR, 30 * HOUR)
    assert [(one.sort, one.number, one.y, one.height) for one in first.pieces] == [
        ("failed", 2, 80, 20),
        ("completed", 8, 0, 80),
    ]
    assert [(one.sort, one.number, one.y + one.height) for one in last.pieces] == [("open", 5, HEIGHT)]
    assert sum(column.number for column in chart.columns) == 15


def test_lengths_are_those_of_jobs_that_have_ended() -> None:
    chart = by_length(
        [
            StreamTally(0, "completed", 0, 3),
            StreamTally(5, "cancelled", len(BOUNDS), 1),
            StreamTally(5, "waiting", None, 9),
        ]
    )
    assert [(column.words, column.number) for column in chart.columns if column.number] == [
        ("under 10 ms", 3),
        ("longer", 1),
    ]


def test_a_day_without_jobs_has_empty_columns() -> None:
    assert all(not column.pieces for column in by_hour([], 0).columns)


@recipe("quick")
async def quick(run: Run, fail: bool) -> None:
    """End at once."""
    if fail:
        raise ValueError("no")


async def test_the_overview_draws_the_day_and_tells_it_as_a_table(served: Served) -> None:
    async with Remit(":memory:", recipes=[quick]) as opened, served(opened) as browser:
        assert "No job was started in this time." in (await browser.get("/")).text
    async with Remit(":memory:", recipes=[quick]) as opened, served(opened) as browser:
        started = [await opened.start(quick(fail=number == 0)) for number in range(4)]
        await opened.service.jobs.settled([job.id for job in started])
        page = (await browser.get("/")).text
        assert 'aria-label="When jobs were started: 4, of which 1 failed"' in page
        assert re.search(r'<th scope="row">\d\d:\d\d</th>(<td class="number">(4|3|1|0|0)</td>){5}', page)
