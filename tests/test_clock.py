from __future__ import annotations

from remit.clock import age, duration


def test_lengths_of_time_are_said_shortly() -> None:
    given_us = [400, 12_345, 1_500_000, 61_000_000, 3_700_000_000, 100_000_000_000]
    assert [duration(one) for one in given_us] == ["0.4 ms", "12 ms", "1.5 s", "1 min 1 s", "1 h 1 min", "1 d 3 h"]
    assert [age(one) for one in given_us] == ["0 s", "0 s", "1 s", "1 min", "1 h", "1 d"]
