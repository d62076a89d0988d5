"""Decisions about one limit's state: how full it is."""

from __future__ import annotations

import pytest

from remit.clock import SECOND
from remit.gateway.turns import TurnPlace, TurnState, fill
from remit.settings.sections.calls import CallLimit

NOW = 1_000 * SECOND


@pytest.mark.parametrize(
    ("state", "full"),
    [
        (TurnState(), {"concurrency": 0.0, "rate": 0.0, "breaker": 0.0}),
        (
            TurnState(full_at=NOW + 5 * SECOND, places={"a": TurnPlace("x", NOW + 1), "b": TurnPlace("x", NOW)}),
            {"concurrency": 50.0, "rate": 50.0, "breaker": 0.0},
        ),
        (
            TurnState(full_at=NOW + 99 * SECOND, failures=2, failed_at=NOW),
            {"concurrency": 0.0, "rate": 100.0, "breaker": pytest.approx(66.7, abs=0.1)},
        ),
        (TurnState(opens_at=NOW + 1, failed_at=NOW), {"concurrency": 0.0, "rate": 0.0, "breaker": 100.0}),
    ],
)
def test_a_limit_says_how_full_each_of_its_bounds_is(state: TurnState, full: dict[str, float]) -> None:
    limit = CallLimit(rate="60/min", burst=10, concurrency=2, breaker=3)
    assert fill(limit, state, NOW) == full
    assert set(fill(CallLimit(concurrency=2), state, NOW)) == {"concurrency"}
