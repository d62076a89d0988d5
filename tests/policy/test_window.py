import datetime as dt
from typing import Any

import pytest

from remit.errors import PolicyError
from remit.policy.condition import KEYS, Window, parse_window
from remit.policy.table import Table


def window(**said: Any) -> Window:
    found = parse_window(Table({"during": said}, "rule 1", ("during",)), "during")
    assert found is not None
    return found


def moment(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1_000_000)


WORK = {"days": ["mon-fri"], "hours": "09:00-17:00", "zone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("said", "at", "expected"),
    [
        (WORK, "2026-05-04T07:00:00Z", True),  # a Monday, 9 o'clock in summer
        (WORK, "2026-05-04T06:59:59Z", False),
        (WORK, "2026-05-04T15:00:00Z", False),
        (WORK, "2026-12-07T07:30:00Z", False),  # 8:30 in winter
        (WORK, "2026-05-03T10:00:00Z", False),  # a Sunday
        ({"hours": "22:00-06:00", "days": "fri"}, "2026-05-08T23:00:00Z", True),
        ({"hours": "22:00-06:00", "days": "fri"}, "2026-05-09T05:59:00Z", True),  # Friday's night
        ({"hours": "22:00-06:00", "days": "fri"}, "2026-05-08T05:00:00Z", False),  # Thursday's
        ({"hours": "22:00-06:00", "days": "fri"}, "2026-05-08T12:00:00Z", False),
        ({"days": ["sat-mon"]}, "2026-05-10T12:00:00Z", True),
        ({"days": ["sat-mon"]}, "2026-05-12T12:00:00Z", False),
        ({"since": dt.date(2026, 5, 1), "until": "2026-06-01T00:00:00Z"}, "2026-05-31T23:59:59Z", True),
        ({"since": dt.date(2026, 5, 1), "until": "2026-06-01T00:00:00Z"}, "2026-06-01T00:00:00Z", False),
        ({"since": "2026-05-01", "zone": "Asia/Tokyo"}, "2026-04-30T15:00:00Z", True),
        ({"hours": "00:00-24:00"}, "2026-05-31T23:59:59Z", True),
    ],
)
def test_a_window_holds_in_its_zone(said: dict[str, Any], at: str, expected: bool) -> None:
    assert window(**said).holds(moment(at)) is expected


def test_an_unknown_time_cannot_be_told() -> None:
    assert window(**WORK).holds(0) is None


@pytest.mark.parametrize(
    "said",
    [
        {}, {"zone": "UTC"}, {"days": ["someday"]}, {"days": ["mon-"]}, {"hours": "9-17"}, {"hours": "09:00-09:00"},
        {"hours": "09:00-24:30"}, {"zone": "Mars/Base", "days": "mon"}, {"zone": "../etc/passwd", "days": "mon"},
        {"since": "soon"}, {"since": 5}, {"since": "2026-05-02", "until": "2026-05-01"}, {"day": ["mon"]}, "mon",
    ],
)  # fmt: skip
def test_what_is_no_window_is_refused(said: Any) -> None:
    with pytest.raises(PolicyError):
        parse_window(Table({"during": said}, "rule 1", ("during",)), "during")


def test_it_is_shown_and_hashed_with_all_it_says() -> None:
    full = window(days=["mon", "wed"], hours="09:00-17:00", since="2026-05-01", until="2026-06-01", zone="UTC")
    assert str(full) == "mon, wed 09:00-17:00 since 2026-05-01T00:00:00Z until 2026-06-01T00:00:00Z UTC"
    assert set(full.canonical()) == set(KEYS)
