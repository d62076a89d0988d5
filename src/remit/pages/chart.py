"""Charts: the jobs of a day by hour, state and length; what models took by day. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from remit.clock import DAY, SECOND
from remit.gateway.budget import Spent
from remit.journal.event import StreamTally
from remit.record.usage import DayBudget

_NAMED: Final = 4
"""Names with a colour of their own; all others share one."""
_OTHERS: Final = "all others"
HOUR: Final = 3_600 * SECOND
HOURS: Final = 24
BOUNDS: Final = (
    SECOND // 100,
    SECOND // 10,
    SECOND,
    10 * SECOND,
    60 * SECOND,
    600 * SECOND,
    HOUR,
    HOURS * HOUR,
)
"""Lengths between which jobs are counted, in microseconds."""
_WORDS: Final = (
    "under 10 ms",
    "to 0.1 s",
    "to 1 s",
    "to 10 s",
    "to 1 min",
    "to 10 min",
    "to 1 h",
    "to 1 day",
    "longer",
)
SORTS: Final = ("failed", "cancelled", "open", "completed")
"""The states of jobs, in the order in which they are stacked from below, so that failures can be compared."""
WIDTH, HEIGHT = 1_000.0, 100.0
"""The units of a chart."""
_NEAR: Final = 2
"""A budget is drawn if it is at most so many times as high as the highest column."""
_GAP: Final = 0.15
"""The part of a column that is left free."""


class ColumnPart(msgspec.Struct, frozen=True):
    """A part of a column."""

    sort: str
    number: float
    y: float
    height: float


class ChartColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column, from the left."""

    x: float
    width: float
    since: int
    """When it begins, in microseconds since the Unix epoch; 0: it stands for lengths."""
    words: str
    """The meaning of it; empty for a time."""
    number: float
    pieces: tuple[ColumnPart, ...]


class BudgetLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a budget allows for a column."""

    name: str
    number: float
    y: float | None = None
    """The height of it; None: far above all columns."""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Columns side by side."""

    columns: tuple[ChartColumn, ...]
    most: float
    """The number at its top: that of the highest column, or of a line above it."""
    total: float
    failed: float
    lines: tuple[BudgetLine, ...] = ()


def first_hour(now: int) -> int:
    """Return when the first of the hours begins; the last one goes on."""
    return (now // HOUR - HOURS + 1) * HOUR


def by_hour(tallies: Iterable[StreamTally], since: int) -> Chart:
    """Return how many jobs began in each hour, and how they stand."""
    counted: list[dict[str, float]] = [{} for _ in range(HOURS)]
    for tally in tallies:
        if tally.stretch < HOURS:
            counts, sort = counted[tally.stretch], tally.state if tally.state in SORTS else "open"
            counts[sort] = counts.get(sort, 0) + tally.number
    return _chart(counted, [(since + hour * HOUR, "") for hour in range(HOURS)])


def by_length(tallies: Iterable[StreamTally]) -> Chart:
    """Return how long the jobs took that have ended."""
    counted: list[dict[str, float]] = [{} for _ in _WORDS]
    for tally in tallies:
        if tally.took is not None and tally.state in SORTS:
            counts = counted[tally.took]
            counts[tally.state] = counts.get(tally.state, 0) + tally.number
    return _chart(counted, [(0, words) for words in _WORDS])


def by_day(amounts: list[dict[str, float]], now: int, lines: Iterable[BudgetLine] = ()) -> Chart:
    """Stack the amounts of days, the last of them today (UTC), by the names that they have there, below lines."""
    first = now // DAY - len(amounts) + 1
    sorts = tuple(sorted({sort for day in amounts for sort in day}))
    return _chart(amounts, [((first + day) * DAY, "") for day in range(len(amounts))], sorts, tuple(lines))


def largest(days: list[dict[str, Spent]]) -> tuple[str, ...]:
    """Return the names that took most, as far as each has a colour of its own; the last stands for all others."""
    totals: dict[str, Spent] = {}
    for day in days:
        for name, spent in day.items():
            totals.setdefault(name, Spent()).add(spent)
    ranked = sorted(totals, key=lambda name: (-totals[name].cost, -totals[name].tokens, name))
    return (*ranked[:_NAMED], _OTHERS) if len(ranked) > _NAMED else tuple(ranked)


def over_days(
    days: list[dict[str, Spent]],
    names: tuple[str, ...],
    now: int,
    measure: Literal["cost", "tokens"],
    budgets: Iterable[DayBudget] = (),
) -> Chart | None:
    """The chart of a measure by day and name, against budgets; None if there is nothing to show."""
    amounts: list[dict[str, float]] = []
    for day in days:
        sums: dict[str, float] = {}
        for name, spent in day.items():
            place = names.index(name) if name in names else _NAMED
            sums[f"s{place}"] = sums.get(f"s{place}", 0) + (spent.cost if measure == "cost" else spent.tokens)
        amounts.append(sums)
    allowed = [(budget.name, budget.cost if measure == "cost" else budget.tokens) for budget in budgets]
    lines = [BudgetLine(name=name, number=number) for name, number in allowed if number]
    return by_day(amounts, now, lines) if any(sum(sums.values()) for sums in amounts) else None


def _chart(
    counted: list[dict[str, float]],
    names: list[tuple[int, str]],
    sorts: tuple[str, ...] = SORTS,
    lines: tuple[BudgetLine, ...] = (),
) -> Chart:
    most = max(sum(counts.values()) for counts in counted)
    near = {line.number for line in lines if line.number <= _NEAR * most}
    most = max([most, *near])
    step = WIDTH / len(counted)
    columns = tuple(
        ChartColumn(
            x=round(number * step + step * _GAP / 2, 2),
            width=round(step * (1 - _GAP), 2),
            since=since,
            words=words,
            number=sum(counts.values()),
            pieces=_pieces(counts, most, sorts),
        )
        for number, (counts, (since, words)) in enumerate(zip(counted, names, strict=True))
    )
    total = sum(column.number for column in columns)
    return Chart(
        columns=columns,
        most=most,
        total=total,
        failed=sum(counts.get("failed", 0) for counts in counted),
        lines=tuple(
            msgspec.structs.replace(line, y=round(HEIGHT * (most - line.number) / most, 2))
            if line.number in near
            else line
            for line in lines
        ),
    )


def _pieces(counts: Mapping[str, float], most: float, sorts: tuple[str, ...]) -> tuple[ColumnPart, ...]:
    pieces, below = [], 0.0
    for sort in sorts:
        number = counts.get(sort, 0)
        if number:
            top = HEIGHT * (most - below - number) / most
            pieces.append(ColumnPart(sort, number, round(top, 2), round(HEIGHT * number / most, 2)))
            below += number
    return tuple(pieces)
