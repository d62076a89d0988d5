from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.jobs.plans.problem import parse_duration, show_duration


@given(st.integers(1, 10 * 366 * 86_400_000))
def test_a_duration_that_was_written_is_read_again(millis: int) -> None:
    assert parse_duration(show_duration(millis)) == millis


@pytest.mark.parametrize(
    ("text", "millis"),
    [("1ms", 1), ("10s", 10_000), ("90s", 90_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("1m1ms", 60_001)],
)
def test_these_last_so_long(text: str, millis: int) -> None:
    assert parse_duration(text) == millis


@pytest.mark.parametrize(
    "text", ["", "10", "s", "0s", "-1s", "1.5h", "1 h", "30m1h", "1s1s", "4000d", "\u0661s", "10s\n", "9" * 5000 + "s"]
)
def test_these_are_no_durations(text: str) -> None:
    assert parse_duration(text) is None
