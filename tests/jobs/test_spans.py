from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.errors import UsageError
from remit.jobs.spans import due, seconds_of, words

EPOCH = datetime.fromtimestamp(0, UTC)


@pytest.mark.parametrize(
    ("span", "expected"), [(None, None), (90, 90), (0.5, 0.5), (timedelta(minutes=1, milliseconds=5), 60.005)]
)
def test_a_span_is_seconds_or_a_timedelta(span: Any, expected: float | None) -> None:
    assert seconds_of(span) == expected


@pytest.mark.parametrize("span", [math.nan, math.inf, -math.inf])
def test_a_span_is_finite(span: float) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        seconds_of(span)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (None, None),
        (2, 2_000_007),
        (-5, 7),
        (timedelta(seconds=2), 2_000_007),
        (EPOCH + timedelta(days=1, microseconds=3), 86_400_000_003),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
    ],
)
def test_a_moment_is_meant_by_a_span_from_now_or_a_datetime(span: Any, expected: int | None) -> None:
    assert due(span, 7) == expected


def test_a_datetime_without_a_time_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="has no time zone") as caught:
        due(datetime(2027, 1, 1), 0)  # noqa: DTZ001 - what is refused
    assert "tzinfo=UTC" in caught.value.remedy


def test_what_was_waited_for_is_said() -> None:
    assert words(timedelta(minutes=2)) == "within 120 s"
    assert words(EPOCH) == "by 1970-01-01T00:00:00+00:00"


@recipe("clocked")
async def clocked(run: Run) -> list[Any]:
    """Wait by timedeltas and datetimes, and read the time."""
    began = await run.time()
    await run.sleep(timedelta(milliseconds=20))
    await run.sleep(began + timedelta(milliseconds=60))
    ended = await run.time()
    missed = ""
    try:
        await run.wait_signal("never", timeout=timedelta(milliseconds=10))
    except TimeoutError as error:
        missed = str(error)
    asked = await run.confirm("well?", timeout=ended)  # which is over
    return [began.tzinfo is UTC, ended - began >= timedelta(milliseconds=60), missed, asked.approved]


async def test_a_run_takes_timedeltas_and_datetimes_and_replays_them() -> None:
    async with Remit(":memory:", recipes=[clocked], policy=[]) as remit:
        job = await remit.start(clocked())
        assert await job == [True, True, "no signal 'never' within 0.01 s", False]
        assert (await remit.replay(job.id)).verdict == "same"
