"""The time of a job: one scale for all of its rows, and one picture in which what a child does lies below it.

On the scale, long stretches without work are folded to a short mark. An address can name a part of the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from remit.record.story import EventStory
from remit.record.views import StepRow

WIDTH: Final = 1_000.0
"""Units from the left to the right end of a scale."""
_FOLD: Final = 24.0
"""Units that a folded stretch takes."""
_PART: Final = 4
"""A gap is folded if it is longer than this part of all work: a quarter."""
_LEAST_US: Final = 2_000_000
"""A gap of fewer microseconds is never folded."""
_FOLDS: Final = 12
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
    """Places instants between 0 and WIDTH.

    What it places lies between `since` and `until`; `origin` is the beginning of the job, if that is earlier.
    """

    def __init__(self, busy: Iterable[Span], since: int, until: int, *, fold: bool = True, origin: int = -1) -> None:
        until = max(until, since + 1)
        self.window = Span(since, until)
        self._origin = since if origin < 0 else origin
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

    def covers(self, since: int, until: int) -> bool:
        """Return whether a stretch lies on the scale, at least in part."""
        return since <= self.window.until and max(since, until) >= self.window.since

    def instant(self, x: float) -> int:
        """Return which instant stands at a place."""
        index = max(0, bisect_right(self._places, x) - 1)
        return self._starts[index] + round((x - self._places[index]) / self._rates[index])

    def zoom(self, since: int, until: int) -> str:
        """Return how an address names a stretch: its ends in microseconds since the job began."""
        return f"{max(0, since - self._origin)}-{max(0, until - self._origin)}"

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
    return sorted(longest[:_FOLDS])


Zoom = Annotated[str, msgspec.Meta(pattern=r"^(\d{1,17}-\d{1,17})?$")]
"""A part of a job's time in an address, as `Scale.zoom` writes it; empty: all of it."""
SegmentKind = Literal["queue", "work", "failed", "wait", "backoff", "doubt"]
"""`queue`: what it waited for had come, and no worker had taken the job yet."""
COLUMNS: Final = 20
"""Parts of a picture that lead into themselves."""
LANES: Final = 12
"""Steps that lie below one another; more share the last lane."""
_NARROW: Final = 2.0
"""Units that a bar takes at least; narrower ones side by side become one."""
_KINDS: Final[dict[str, SegmentKind]] = {
    "failed": "failed",
    "blocked": "failed",
    "unknown": "doubt",
    "waiting": "wait",
}
_OPEN: Final = ("running", "waiting", "unknown")


class Bar(msgspec.Struct, kw_only=True):
    """A step in the picture, or several narrow ones side by side."""

    step: str
    """The first one's place."""
    name: str
    kind: SegmentKind | Literal["child"]
    x: float
    width: float
    lane: int
    number: int = 1
    zoom: str = ""
    """The part of the time that a child took; empty if no child took it."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """All steps on one scale."""

    bars: tuple[Bar, ...]
    lanes: int
    columns: tuple[tuple[float, str], ...]
    """Places on the scale, and the part of the time that each leads to."""
    ticks: tuple[int, ...]
    """The instants of four equal parts, in microseconds since the job began."""
    earlier: str
    """The part before this one, as long; empty for the first."""
    later: str
    wider: str
    """Twice as much; empty: this is all."""


def window_of(zoom: str, story: EventStory, until: int) -> Span:
    """The part of a job's time that an address names; all of it where that lies outside."""
    whole = Span(story.created_at, max(until, story.created_at + 1))
    since, _, end = zoom.partition("-")
    if not end:
        return whole
    part = Span(whole.since + int(since), min(whole.until, whole.since + int(end)))
    return part if part.since < part.until else whole


def scale_of(story: EventStory, until: int, *, fold: bool, window: Span | None = None) -> Scale:
    """The scale of a job's whole time, which ends `until` then, or of a part of it."""
    since, end = window or (story.created_at, until)
    busy = (Span(*span) for span in story.busy(until))
    return Scale(busy, since, end, fold=fold, origin=story.created_at)


def span_of(story: EventStory, row: StepRow, until: int) -> Span:
    """Return when a step was at work or waited; one that is not over goes on `until` then."""
    since, end = story.span(row.step)
    return Span(since, max(end, until) if row.state in _OPEN and story.ended_at is None else end)


def picture_of(story: EventStory, rows: Iterable[StepRow], scale: Scale, until: int) -> Picture:
    """The picture of steps: each in the first lane that is free below the child it is part of."""
    ends, lanes, bars = [0.0] * LANES, dict[str, int](), list[Bar]()
    newest: dict[int, Bar] = {}
    for row in rows:
        span = span_of(story, row, until)
        if row.taken_from or not scale.covers(*span):
            continue
        x = min(scale.at(span.since), WIDTH - _NARROW)
        width = max(_NARROW, scale.at(span.until) - x)
        lane = _lane(ends, x, lanes.get(_parent(row.step, lanes), -1) + 1)
        child = row.step in story.history.children
        if child:
            lanes[row.step] = lane
        kind = "child" if child else _kind(row)
        bar = Bar(step=row.step, name=row.name.removeprefix("tool."), kind=kind, x=x, width=width, lane=lane)
        bar.zoom = scale.zoom(*span) if child else ""
        ends[lane] = max(ends[lane], scale.at(span.until))
        before = newest.get(lane)
        if before is not None and _joins(before, bar):
            before.width, before.number = max(before.width, x + width - before.x), before.number + 1
        else:
            bars.append(bar)
            newest[lane] = bar
    return _framed(story, scale, until, bars)


def _kind(row: StepRow) -> SegmentKind:
    """Return what a step did most of its time, as far as its row says so."""
    plain: SegmentKind = "wait" if row.name.startswith("wait.") else "backoff" if row.attempt > 1 else "work"
    return _KINDS.get(row.state, plain)


def _framed(story: EventStory, scale: Scale, until: int, bars: list[Bar]) -> Picture:
    since, end = scale.window
    whole = window_of("", story, until)
    length = end - since
    edges = [scale.instant(WIDTH * number / COLUMNS) for number in range(COLUMNS + 1)]
    half = length // 2 + 1
    return Picture(
        bars=tuple(bars),
        lanes=max((bar.lane for bar in bars), default=0) + 1,
        columns=tuple(
            (WIDTH * number / COLUMNS, scale.zoom(first, last))
            for number, (first, last) in enumerate(pairwise(edges))
            if last > first
        ),
        ticks=tuple(scale.instant(WIDTH * number / 4) - whole.since for number in range(5)),
        earlier=scale.zoom(max(whole.since, since - length), since) if since > whole.since else "",
        later=scale.zoom(end, min(whole.until, end + length)) if end < whole.until else "",
        wider=scale.zoom(since - half, end + half) if length < whole.until - whole.since else "",
    )


def _lane(ends: Sequence[float], x: float, first: int) -> int:
    """The first lane from `first` on that is free at a place."""
    return next((lane for lane in range(min(first, LANES - 1), LANES) if ends[lane] <= x + 0.01), LANES - 1)


def _parent(step: str, known: Container[str]) -> str:
    """The child recipe that a step is part of, by its place; empty: none."""
    above = step.rpartition(".")[0]
    while above and above not in known:
        above = above.rpartition(".")[0]
    return above


def _joins(before: Bar, bar: Bar) -> bool:
    """Return whether two bars are too narrow to be told apart."""
    narrow = bar.width <= _NARROW and (before.number > 1 or before.width <= _NARROW)
    return narrow and before.kind == bar.kind != "child" and bar.x <= before.x + before.width + _NARROW
