"""Usage: what models took, by job, principal, model, recipe, label or day, and day by day.

Limits: how full the limits of calls, the pots of rules and the budgets for models are.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.clock import DAY
from remit.gateway.budget import Spent
from remit.pages.chart import Chart, largest, over_days
from remit.pages.page import Page, PageRequest, PageView, dollars, link
from remit.record.usage import BudgetRow, By, priced, summed
from remit.service.policy import PotView, RateView

_SHOWN: Final = 200
"""Rows of a page; the largest ones."""
_LONGEST: Final = 90
"""Days that charts go back."""
_DAYS: Final[dict[str, int]] = {"1": 1, "7": 7, "30": 30, "90": 90}


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which sums."""

    by: Literal[By, "recipe", "label"] = "day"
    label: str = ""
    """The key of the label."""
    days: Literal["1", "7", "30", "90", "all"] = "7"
    """The days to look back."""


class UsageSum(msgspec.Struct, frozen=True, kw_only=True):
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


class UsagePage(PageView, frozen=True, kw_only=True):
    """Sums, the largest first; days in their order."""

    template: ClassVar[str] = "usage.html"
    query: UsageQuery
    measure: Literal["cost", "tokens"]
    """The measure of the bars: tokens if no price is known."""
    calls: int
    tokens: int
    cost: str
    most: float
    """The value that the longest bar stands for."""
    lines: tuple[UsageSum, ...]
    matches: int
    names: tuple[str, ...]
    """The names of the charts' colours, in their order."""
    costs: Chart | None
    """Cost by day; None: no price is known, or a day or a job is a row of its own."""
    amounts: Chart | None
    """Tokens by day."""


async def usage(request: PageRequest) -> UsagePage:
    """Add up what was asked of models since the day that the query names."""
    query: UsageQuery = request.query
    days = _DAYS.get(query.days)
    since = (request.now // DAY - days + 1) * DAY if days else 0
    sums: list[dict[str, Spent]] = []
    if query.by not in {"day", "job"}:
        name = query.label if query.by == "label" else query.by
        sums = await request.service.usage.over_time(name, days or _LONGEST, request.now)
    match query.by:
        case "recipe" | "label":
            rows = summed(sums)
        case by:
            rows = await request.service.usage.rows(by, since=since)
    names, budgets = largest(sums), request.service.usage.of_a_day(request.now)
    cost = sum(row.cost or 0.0 for row in rows)
    sizes = {row.name: (row.cost or 0.0) if cost else row.tokens for row in rows}
    most = max(sizes.values(), default=0) or 1
    if query.by == "day":
        rows.sort(key=lambda row: row.name, reverse=True)
    return UsagePage(
        title="Usage",
        query=query,
        measure="cost" if cost else "tokens",
        calls=sum(row.calls for row in rows),
        tokens=sum(row.tokens for row in rows),
        most=most,
        cost=_dollars(cost if any(row.cost is not None for row in rows) else None, sum(row.unpriced for row in rows)),
        lines=tuple(
            UsageSum(
                name=row.name,
                path=_path(row.name) if query.by == "job" else "",
                calls=row.calls,
                tokens=row.tokens,
                cost=_dollars(row.cost, row.unpriced),
                width=round(1_000 * sizes[row.name] / most, 1),
            )
            for row in rows[:_SHOWN]
        ),
        matches=len(rows),
        names=names,
        costs=over_days(sums, names, request.now, "cost", budgets),
        amounts=over_days(sums, names, request.now, "tokens", budgets),
    )


class LimitPage(PageView, frozen=True, kw_only=True):
    """What is limited, and how full each limit is."""

    template: ClassVar[str] = "limits.html"
    pots: tuple[PotView, ...]
    rates: tuple[RateView, ...]
    """Limits of calls to tools and models."""
    budgets: tuple[BudgetRow, ...]
    """The limits of a day for each principal, the fullest first."""
    limited: bool
    """Whether a day has a budget for models."""
    named: tuple[BudgetRow, ...]
    """The budgets of `[[models.budgets]]`, the fullest first."""


async def limits(request: PageRequest) -> LimitPage:
    """Look how full they are."""
    usage, limits_of_day = request.service.usage, request.service.usage.limits
    return LimitPage(
        title="Limits",
        pots=tuple(await request.service.policy.pots()),
        rates=tuple(await request.service.policy.rates()),
        budgets=_fullest(await usage.of_today(request.now)),
        limited=limits_of_day.cost is not None or limits_of_day.tokens is not None,
        named=_fullest(await usage.budgets()),
    )


def _fullest(rows: list[BudgetRow]) -> tuple[BudgetRow, ...]:
    return tuple(sorted(rows, key=lambda row: -row.percent)[:_SHOWN])


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
        about="tokens and cost of models, by day, job, person, model, recipe or label",
        query=UsageQuery,
        live="heads",
    ),
    Page(
        path="/limits",
        scope="read",
        handler=limits,
        name="Limits",
        key="c",
        under="What may run?",
        about="limits of calls, pots of rules and budgets for models, and how full each is",
        live="heads",
    ),
)
