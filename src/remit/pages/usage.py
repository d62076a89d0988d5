"""Usage: what models took, by job, principal, model or day."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.clock import DAY
from remit.pages.page import Page, PageRequest, View, dollars, link
from remit.record.usage import By, priced

_SHOWN: Final = 200
"""Rows of a page; the largest ones."""
_DAYS: Final[dict[str, int]] = {"1": 1, "7": 7, "30": 30, "90": 90}


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which sums."""

    by: By = "day"
    days: Literal["1", "7", "30", "90", "all"] = "7"
    """The days to look back."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One sum."""

    name: str
    path: str
    """The page of what it is the sum of; empty if it has none."""
    calls: int
    tokens: int
    cost: str
    """In US dollars, with the requests whose price is not known."""
    width: float
    """Of its bar: 1,000 for the largest."""


class Usage(View, frozen=True, kw_only=True):
    """Sums, the largest first; days in their order."""

    template: ClassVar[str] = "usage.html"
    query: Query
    measure: Literal["cost", "tokens"]
    """The measure of the bars: tokens if no price is known."""
    calls: int
    tokens: int
    cost: str
    most: float
    """The value that the longest bar stands for."""
    lines: tuple[Line, ...]
    found: int


async def usage(asked: PageRequest) -> Usage:
    """Add up what was asked of models since the day that the query names."""
    query: Query = asked.query
    days = _DAYS.get(query.days)
    since = (asked.now // DAY - days + 1) * DAY if days else 0
    rows = await asked.service.usage.rows(query.by, since=since)
    cost = sum(row.cost or 0.0 for row in rows)
    sizes = {row.name: (row.cost or 0.0) if cost else row.tokens for row in rows}
    most = max(sizes.values(), default=0) or 1
    if query.by == "day":
        rows.sort(key=lambda row: row.name, reverse=True)
    return Usage(
        title="Usage",
        query=query,
        measure="cost" if cost else "tokens",
        calls=sum(row.calls for row in rows),
        tokens=sum(row.tokens for row in rows),
        most=most,
        cost=_dollars(cost if any(row.cost is not None for row in rows) else None, sum(row.unpriced for row in rows)),
        lines=tuple(
            Line(
                name=row.name,
                path=_path(row.name) if query.by == "job" else "",
                calls=row.calls,
                tokens=row.tokens,
                cost=_dollars(row.cost, row.unpriced),
                width=round(1_000 * sizes[row.name] / most, 1),
            )
            for row in rows[:_SHOWN]
        ),
        found=len(rows),
    )


def _dollars(cost: float | None, unpriced: int) -> str:
    return priced(cost, unpriced, dollars)


def _path(name: str) -> str:
    """The page of a job or session."""
    return link("/sessions/{}" if name.startswith("ses_") else "/jobs/{}", name.partition("/")[0])


PAGES: Final = (
    Page(
        path="/usage",
        scope="read",
        handler=usage,
        name="Usage",
        key="u",
        under="Agents",
        about="tokens and cost of models, by day, job, person or model",
        query=Query,
        live="heads",
    ),
)
