"""When schedules come: expressions, intervals, jitter, and clocks that change, in every zone where they do."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import UsageError
from remit.parts.schedules.times import COUNTED, Times
from tests.parts.schedules.clockwork import micros

BERLIN = "Europe/Berlin"
TIMES_OF_DAY = ((2, 30), (0, 0), (1, 15), (3, 0))[: None if os.environ.get("REMIT_TEST_ZONES") else 1]


def times(cron: str = "", *, every: str = "", zone: str = "UTC", jitter: str = "", name: str = "n") -> Times:
    return Times(name, cron, every, zone, jitter)


def shown(of: Times, since: str, count: int, zone: str = "UTC") -> list[str]:
    at: int | None = micros(since)
    found = []
    for _ in range(count):
        assert at is not None
        at = of.after(at)
        assert at is not None
        found.append(datetime.fromtimestamp(at / SECOND, ZoneInfo(zone)).isoformat(timespec="minutes"))
    return found


@pytest.mark.parametrize(
    ("cron", "since", "expected"),
    [
        ("30 2 * * *", "2026-10-01T02:30:00+00:00", "2026-10-02T02:30+00:00"),
        ("*/15 9-17 * * 1-5", "2026-11-06T17:50:00+00:00", "2026-11-09T09:00+00:00"),
        ("0 0 29 2 *", "2026-03-01T00:00:00+00:00", "2028-02-29T00:00+00:00"),
        ("0 12 13 * 5", "2026-11-01T00:00:00+00:00", "2026-11-06T12:00+00:00"),  # day of month OR of week
        ("0 0 * * 7", "2026-11-01T00:00:00+00:00", "2026-11-08T00:00+00:00"),  # 7 is Sunday, too
        ("0 0 L * *", "2026-11-01T00:00:00+00:00", "2026-11-30T00:00+00:00"),
        ("@daily", "2026-11-01T00:00:00+00:00", "2026-11-02T00:00+00:00"),
        ("@weekly", "2026-11-02T00:00:00+00:00", "2026-11-08T00:00+00:00"),
        ("@yearly", "2026-11-02T00:00:00+00:00", "2027-01-01T00:00+00:00"),
        ("@every 90m", "2026-11-02T00:00:00+00:00", "2026-11-02T01:30+00:00"),
    ],
)
def test_an_expression_comes_when_cron_says(cron: str, since: str, expected: str) -> None:
    assert shown(times(cron), since, 1) == [expected]


@pytest.mark.parametrize(
    ("cron", "every", "zone"),
    [
        ("", "", "UTC"),
        ("* * * * *", "1h", "UTC"),
        ("0 0 30 2 *", "", "UTC"),
        ("61 * * * *", "", "UTC"),
        ("* * * *", "", "UTC"),
        ("*/15 * * * * *", "", "UTC"),
        ("@reboot", "", "UTC"),
        ("", "0s", "UTC"),
        ("", "10ms", "UTC"),
        ("", "soon", "UTC"),
        ("0 0 * * *", "", "Europe/Atlantis"),
        ("0 0 * * *", "", "../etc/passwd"),
    ],
)
def test_what_cannot_be_understood_is_refused(cron: str, every: str, zone: str) -> None:
    with pytest.raises(UsageError) as error:
        times(cron, every=every, zone=zone)
    assert error.value.code is Code.SCHEDULE_INVALID
    assert error.value.remedy


def test_a_time_that_is_skipped_comes_at_the_end_of_the_gap() -> None:
    assert shown(times("30 2 * * *", zone=BERLIN), "2026-03-28T00:00:00+01:00", 3, BERLIN) == [
        "2026-03-28T02:30+01:00",
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_a_time_that_comes_twice_comes_once() -> None:
    assert shown(times("30 2 * * *", zone=BERLIN), "2026-10-24T00:00:00+02:00", 3, BERLIN) == [
        "2026-10-24T02:30+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


@pytest.mark.parametrize("since", ["2026-03-28T12:00:00+01:00", "2026-10-24T12:00:00+02:00"])
def test_wildcard_hours_go_by_elapsed_time(since: str) -> None:
    of, at = times("0 * * * *", zone=BERLIN), micros(since)
    for _ in range(24):
        following = of.after(at)
        assert following is not None
        assert following - at == 3_600 * SECOND
        at = following


def expected(zone: ZoneInfo, day: datetime, hour: int, minute: int) -> int:
    """The rule, without a library: the first of two, and the end of a gap."""
    wanted = day.replace(hour=hour, minute=minute)
    instant = wanted.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == wanted:
        return round(instant.timestamp()) * SECOND
    instant -= timedelta(hours=4)
    while instant.astimezone(zone).replace(tzinfo=None) < wanted:
        instant += timedelta(minutes=1)
    return round(instant.timestamp()) * SECOND


def changing(year: int) -> list[str]:
    """The zones whose clocks change in a year."""

    def offsets(name: str) -> set[timedelta | None]:
        return {datetime(year, month, 1, tzinfo=ZoneInfo(name)).utcoffset() for month in range(1, 13)}

    return [name for name in sorted(available_timezones()) if name != "localtime" and len(offsets(name)) > 1]


@pytest.mark.slow
def test_in_no_zone_a_day_is_missed_or_comes_twice() -> None:
    zones = changing(2026)
    assert len(zones) >= 150
    for name in zones:
        zone = ZoneInfo(name)
        for hour, minute in TIMES_OF_DAY:
            of, at = times(f"{minute} {hour} * * *", zone=name), micros("2025-12-31T12:00:00+00:00")
            days = [datetime(2026, 1, 2) + timedelta(days=number) for number in range(364)]  # noqa: DTZ001 - of a clock
            reference = [expected(zone, day, hour, minute) for day in days]
            at = reference[0] - 1
            found = []
            for _ in days:
                following = of.after(at)
                assert following is not None
                found.append(at := following)
            assert found == reference, (name, hour, minute)


@pytest.mark.parametrize(
    ("cron", "every"), [("*/5 * * * *", ""), ("30 2 * * *", ""), ("0 9 1 * *", ""), ("", "7m"), ("0 0 29 2 *", "")]
)
def test_the_newest_time_is_the_last_of_those_that_came(cron: str, every: str) -> None:
    of = times(cron, every=every, zone=BERLIN)
    first = of.after(micros("2026-03-27T00:00:00+00:00"))
    assert first is not None
    for hours in (0, 1, 30, 24 * 40, 24 * 900):
        now = first + hours * 3_600 * SECOND
        newest = of.latest(first, now)
        following = of.after(newest)
        assert first <= newest <= now
        assert following is None or following > now


def test_times_are_counted_up_to_a_thousand() -> None:
    of = times(every="1m")
    minute = 60 * SECOND
    assert [of.count(minute, minute * number) for number in (1, 2, 5_000)] == [1, 2, COUNTED]


def test_jitter_follows_from_name_and_time_and_spreads() -> None:
    one, other = times(every="1h", jitter="10m", name="a"), times(every="1h", jitter="10m", name="b")
    hours = [number * 3_600 * SECOND for number in range(200)]
    late = [one.due(at) - at for at in hours]
    assert late == [one.due(at) - at for at in hours]
    assert late != [other.due(at) - at for at in hours]
    assert all(0 <= each < 600 * SECOND for each in late)
    assert max(late) - min(late) > 500 * SECOND
    assert all(before != after for before, after in pairwise(late))
