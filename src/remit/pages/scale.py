"""A scale of time on which long stretches without work are folded to a short mark. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

WIDTH: Final = 1_000.0
"""Units from the left to the right end of a scale."""
_FOLD: Final = 24.0
"""Units that a folded stretch takes."""
_PART: Final = 4
"""A gap is folded if it is longer than this part of all work: a quarter."""
_LEAST_US: Final = 2_000_000
"""A gap of fewer microseconds is never folded."""
_MOST: Final = 12
"""Folded stretches at most; the longest are folded."""


class Span(NamedTuple):
    """A stretch of time, in microseconds since the Unix epoch."""

    since: int
    until: int


class Fold(NamedTuple):
    """A stretch that was folded."""

    x: float
    width: float
    micros: int


class Scale:
    """Places instants between 0 and WIDTH."""

    def __init__(self, busy: Iterable[Span], since: int, until: int, *, fold: bool = True) -> None:
        until = max(until, since + 1)
        gaps = _gaps(busy, since, until) if fold else []
        shown = until - since - sum(gap.until - gap.since for gap in gaps)
        per = (WIDTH - _FOLD * len(gaps)) / max(1, shown)
        self.folds: list[Fold] = []
        self._starts, self._places, self._rates = [since], [0.0], [per]
        x = 0.0
        last = since
        for gap in gaps:
            x += (gap.since - last) * per
            self.folds.append(Fold(x, _FOLD, gap.until - gap.since))
            self._add(gap.since, x, _FOLD / (gap.until - gap.since))
            x += _FOLD
            self._add(gap.until, x, per)
            last = gap.until

    def at(self, instant: int) -> float:
        """Return where an instant stands; what lies outside is put at the ends."""
        index = max(0, bisect_right(self._starts, instant) - 1)
        x = self._places[index] + (instant - self._starts[index]) * self._rates[index]
        return min(WIDTH, max(0.0, x))

    def _add(self, start: int, x: float, rate: float) -> None:
        self._starts.append(start)
        self._places.append(x)
        self._rates.append(rate)


def _gaps(busy: Iterable[Span], since: int, until: int) -> list[Span]:
    """The stretches worth folding, in order; never all there is."""
    gaps, last, work = list[Span](), since, 0
    for span in sorted(busy):
        begin, end = (min(max(instant, last), until) for instant in span)
        if begin > last:
            gaps.append(Span(last, begin))
        work += end - begin
        last = end
    if until > last:
        gaps.append(Span(last, until))
    least = max(_LEAST_US, work // _PART)
    longest = sorted((gap for gap in gaps if gap.until - gap.since > least), key=lambda gap: gap.since - gap.until)
    if sum(gap.until - gap.since for gap in longest) >= until - since:
        longest = longest[1:]
    return sorted(longest[:_MOST])
