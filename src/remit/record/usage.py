"""The use of models, by job, principal, model or day."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.clock import DAY, SECOND, isoformat
from remit.gateway.budget import Spending, Spent, own
from remit.gateway.model_budgets import Account, ModelBudget, account_of
from remit.jobs.state import stream_of
from remit.journal.kinds import CommandCommitted, CommandStarted, decode
from remit.record.generations import GenerationReader, Generations, GenerationSearch

if TYPE_CHECKING:
    from remit.gateway.model_request import Allowance
    from remit.gateway.sums import Sum
    from remit.journal.event import Event
    from remit.journal.journal import Journal

_UNKNOWN: Final = "\u2013"
_OLD: Final = 3_600 * SECOND
_RECIPE: Final = "remit.name"
_LARGEST: Final = 2_000
_KEPT: Final = 100
"""Days whose sums by principal and model stay in memory."""
By = Literal["job", "principal", "model", "day"]


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One sum."""

    name: str
    """The job or session, the principal, the model's name, or the day as `2026-01-31` (UTC)."""
    calls: int
    """Requests, each attempt for itself."""
    tokens: int
    """Input and output; an answer that did not arrive counts as what was reserved for it."""
    cost: float | None
    """US dollars, estimated, of the requests whose price is known; None: none of those that cost something."""
    unpriced: int = 0
    """Requests whose price is not known."""


class BudgetRow(msgspec.Struct, frozen=True, kw_only=True):
    """A budget of models in its present period."""

    budget: str
    share: str
    """The value that has it for itself; empty: all share it."""
    period: str
    percent: float
    words: str
    """The part of it that is taken, as `$4.12 of $5 this month`."""


def _row(account: Account, spent: Spent) -> BudgetRow:
    return BudgetRow(
        budget=account.budget.name,
        share=account.share,
        period=account.period,
        percent=round(account.budget.percent(spent), 1),
        words=account.budget.words(spent),
    )


def priced(cost: float | None, unpriced: int, form: Callable[[float], str] = "{:.4f}".format) -> str:
    """A cost in dollars for people; a request whose price is not known is not one of 0."""
    known = form(cost) if cost is not None else ""
    if not unpriced:
        return known or _UNKNOWN
    return f"{known} + {unpriced:,} request{'s' * (unpriced != 1)} without a price" if known else _UNKNOWN


class DayBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a budget of models that a day has."""

    name: str
    cost: float | None
    """US dollars; of a month, its even part."""
    tokens: float | None


class Usage:
    """Sums of one journal."""

    def __init__(self, journal: Journal, allowance: Allowance) -> None:
        self.limits = allowance.limits
        """Limits for each principal and day."""
        self._journal = journal
        self._allowance = allowance
        self._sums = allowance.sums
        self._generations = GenerationReader(journal, allowance.sums)
        self._by_day: dict[int, tuple[int, dict[tuple[str, str], Spent]]] = {}

    # --- queries

    async def generations(self, wanted: GenerationSearch) -> Generations:
        """The newest requests to models that are wanted, and where to go on."""
        return await self._generations.page(wanted)

    async def budgets(self) -> list[BudgetRow]:
        """Return how full each budget of models is now, with what is reserved."""
        return [_row(account, spent) for account, spent in await self._allowance.standing()]

    async def of_today(self, now: int) -> list[BudgetRow]:
        """Return how full the limits of a day are for each principal who asked a model today."""
        limits, [today] = self.limits, await self.over_time("principal", 1, now)
        if limits.cost is None and limits.tokens is None:
            return []
        cents = None if limits.cost is None else round(limits.cost * 100)
        day = ModelBudget(name="day", per="day", cents=cents, tokens=limits.tokens, each="principal")
        return [_row(account_of(day, now, principal), spent) for principal, spent in today.items()]

    def of_a_day(self, now: int) -> list[DayBudget]:
        """Return what budgets allow for a day: first the limits of each principal, then the budgets by name."""
        limits = self.limits
        budgets = [DayBudget(name="each principal", cost=limits.cost, tokens=limits.tokens)]
        for budget in self._allowance.budgets:
            days = len(account_of(budget, now).days)
            each = f", each {budget.each.removeprefix('label:')}" if budget.each else ""
            cost, tokens = budget.cents and budget.cents / 100 / days, budget.tokens and budget.tokens / days
            budgets.append(DayBudget(name=f"{budget.name}{each}", cost=cost, tokens=tokens))
        return budgets

    async def by_day(self, days: int, now: int) -> list[dict[tuple[str, str], Spent]]:
        """Sums of the last days (UTC), the oldest first, each by principal and model.

        Those of days before yesterday, which change only where an answer comes that late, are up to an hour old.
        """
        await self._sums.refresh()
        today = now // DAY
        wanted = range(today - days + 1, today + 1)
        old = [day for day in wanted if day < today - 1 and self._by_day.get(day, (-_OLD,))[0] <= now - _OLD]
        fresh = [*old, today - 1, today]
        await self._sums.refresh(fresh)
        for day in fresh:
            self._by_day[day] = now, self._added_up(day)
        self._by_day = {day: sums for day, sums in self._by_day.items() if day > today - _KEPT}
        return [self._by_day[day][1] for day in wanted]

    def _added_up(self, day: int) -> dict[tuple[str, str], Spent]:
        totals: dict[tuple[str, str], Spent] = {}
        for row in self._sums.of(day):
            totals.setdefault((row.principal, row.model), Spent()).add(row.spent)
        return totals

    async def over_time(self, by: str, days: int, now: int) -> list[dict[str, Spent]]:
        """Sums of the last days (UTC), the oldest first, by `model`, `principal`, `recipe` or a label of the jobs.

        Jobs that took less than the 2,000 largest have no recipe or label here, like sessions: their name is empty.
        """
        today = now // DAY
        wanted = range(today - days + 1, today + 1)
        await self._sums.refresh()
        await self._sums.refresh(list(wanted))
        rows = [self._sums.of(day) for day in wanted]
        labels = await self._labels(rows, _RECIPE if by == "recipe" else by) if by not in {"model", "principal"} else {}
        sums: list[dict[str, Spent]] = []
        for day in rows:
            totals: dict[str, Spent] = {}
            for row in day:
                name = (
                    row.model if by == "model" else row.principal if by == "principal" else labels.get(row.stream, "")
                )
                totals.setdefault(name, Spent()).add(row.spent)
            sums.append(totals)
        return sums

    async def _labels(self, days: Sequence[Iterable[Sum]], key: str) -> dict[str, str]:
        """The value of a label of the largest streams, by stream."""
        sizes: dict[str, Spent] = {}
        for day in days:
            for row in day:
                sizes.setdefault(row.stream, Spent()).add(row.spent)
        largest = sorted(sizes, key=lambda stream: (-sizes[stream].cost, -sizes[stream].tokens))[:_LARGEST]
        heads = [(stream, await self._journal.head(stream)) for stream in largest]
        return {stream: head.labels.get(key, "") for stream, head in heads if head is not None}

    async def rows(self, by: By, *, since: int = 0) -> list[UsageRow]:
        """Sums of the days (UTC) from that of `since` on (microseconds since the Unix epoch), the largest first."""
        sums, first = self._sums, since // DAY
        await sums.refresh()
        days = [day for day in sums.days if day >= first]
        await sums.refresh(days)
        totals: dict[str, Spent] = {}
        for day in days:
            for row in sums.of(day):
                totals.setdefault(_name(by, day, row), Spent()).add(row.spent)
        return _rows(totals)

    async def of(self, job: str) -> list[UsageRow]:
        """Return what one job took, by model."""
        return _rows({name: row.spent for name, row in _by_model(await self._journal.read(stream_of(job))).items()})


def summed(days: Iterable[dict[str, Spent]]) -> list[UsageRow]:
    """Return the sums of all days together, the largest first."""
    totals: dict[str, Spent] = {}
    for day in days:
        for name, spent in day.items():
            totals.setdefault(name, Spent()).add(spent)
    return _rows(totals)


def _rows(totals: dict[str, Spent]) -> list[UsageRow]:
    rows = [
        UsageRow(
            name=name,
            calls=spent.calls,
            tokens=spent.tokens,
            cost=round(spent.cost, 9) if spent.cost or not spent.unpriced else None,
            unpriced=spent.unpriced,
        )
        for name, spent in totals.items()
    ]
    return sorted(rows, key=lambda row: (-(row.cost or 0.0), -row.tokens, row.name))


def _name(by: By, day: int, total: Sum) -> str:
    match by:
        case "job":
            return total.stream.partition("/")[2]
        case "principal":
            return total.principal
        case "model":
            return total.model
        case "day":
            return isoformat(day * DAY).partition("T")[0]


def _by_model(events: list[Event]) -> dict[str, Spending]:
    names: dict[str, str] = {}
    totals: dict[str, Spending] = {}
    for event in own(events):
        payload = decode(event.kind, event.data) if event.kind.startswith("command_") else None
        if isinstance(payload, CommandStarted):
            names[payload.invocation_id] = payload.name
            totals.setdefault(payload.name, Spending()).started(payload)
        elif isinstance(payload, CommandCommitted) and payload.invocation_id in names:
            totals[names[payload.invocation_id]].committed(payload)
    return totals
