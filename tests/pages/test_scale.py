from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.pages.timeline import WIDTH, Scale, Span

pytestmark = pytest.mark.slow

SECOND = 1_000_000


def test_idle_time_is_folded_and_work_keeps_its_proportions() -> None:
    scale = Scale([Span(0, SECOND), Span(3_600 * SECOND, 3_601 * SECOND)], 0, 3_601 * SECOND)
    (fold,) = scale.folds
    assert fold.micros == 3_599 * SECOND
    first, second = scale.at(SECOND) - scale.at(0), scale.at(3_601 * SECOND) - scale.at(3_600 * SECOND)
    assert abs(first - second) < 0.01
    assert first > 480


def test_time_is_true_if_nothing_is_to_be_folded() -> None:
    scale = Scale([Span(0, SECOND), Span(3_600 * SECOND, 3_601 * SECOND)], 0, 3_601 * SECOND, fold=False)
    assert scale.folds == []
    assert abs(scale.at(1_800 * SECOND) - WIDTH * 1_800 / 3_601) < 0.01


@given(st.lists(st.tuples(st.integers(0, 10**13), st.integers(0, 10**12)), max_size=30), st.integers(1, 10**13))
def test_a_later_instant_never_stands_before_an_earlier_one(spans: list[tuple[int, int]], until: int) -> None:
    scale = Scale([Span(since, since + length) for since, length in spans], 0, until)
    places = [scale.at(until * part // 50) for part in range(-2, 54)]
    assert places == sorted(places)
    assert (scale.at(0), round(scale.at(until), 3)) == (0, WIDTH)
