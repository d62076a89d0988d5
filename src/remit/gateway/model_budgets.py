"""Budgets of models: what questions may take in a day or a month (UTC), and at which levels people are told.

A question counts for each budget that fits it from its announcement on, at what is reserved for it; the announcement
names them. A level that is reached is recorded before the question is announced, in a stream of the budget's period:
each once, since one append alone fits the stream, and again by the next question if a process died before.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec

from remit.canonical import sha256
from remit.clock import DAY, SECOND
from remit.errors import AppendConflictError, SettingsError
from remit.journal.kinds import BudgetReached, decode
from remit.settings.section import Texts, converted

if TYPE_CHECKING:
    from remit.gateway.budget import Spent
    from remit.journal.journal import Journal
    from remit.settings.section import Tables

KIND: Final = "budget"
"""The kind of the streams of budgets."""
_LABEL: Final = "label:"
_WHOLE: Final = 100
_Most = Annotated[int, msgspec.Meta(ge=1, le=2**50)]
_Level = Annotated[int, msgspec.Meta(ge=1, le=100)]


class Questioner(msgspec.Struct, frozen=True):
    """The caller for whom a question to a model counts."""

    principal: str
    recipe: str
    labels: Mapping[str, str]


class ModelBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget; it is about the questions that fit all of its conditions."""

    name: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="letters, digits, _, -")]
    per: Literal["day", "month"] = "month"
    """When it begins again (UTC)."""
    cents: _Most | None = None
    """US cents."""
    tokens: _Most | None = None
    """Tokens, in and out."""
    each: Annotated[
        str, msgspec.Meta(pattern="^(principal|recipe|label:.+)?$", description="principal, recipe or label:NAME")
    ] = ""
    """The field of which each value has this budget for itself; empty: all share it."""
    models: Texts = ("*",)
    """Names or globs."""
    principals: Texts = ("*",)
    """Names or globs of those who ask."""
    recipes: Texts = ("*",)
    """Names or globs."""
    labels: dict[str, str] = {}
    """Labels that the job must have."""
    alert: tuple[_Level, ...] = (80, 100)
    """Parts of it, in percent, of which people are told."""
    then: Literal["refuse", "ask", "tell"] = "refuse"
    """The fate of a question that may take more than is left."""

    def fits(self, caller: Questioner, model: str) -> bool:
        """Return whether it is about a question to a model."""
        wanted = ((self.models, model), (self.principals, caller.principal), (self.recipes, caller.recipe))
        return all(any(fnmatchcase(value, pattern) for pattern in patterns) for patterns, value in wanted) and all(
            caller.labels.get(name) == value for name, value in self.labels.items()
        )

    def share(self, caller: Questioner) -> str:
        """Return the value that has the budget for itself."""
        if self.each.startswith(_LABEL):
            return caller.labels.get(self.each.removeprefix(_LABEL), "")
        return {"principal": caller.principal, "recipe": caller.recipe}.get(self.each, "")

    def percent(self, spent: Spent) -> float:
        """Return how much of it such a sum is, in percent."""
        parts = [spent.cost * 10_000 / self.cents] if self.cents else []
        parts += [spent.tokens * 100 / self.tokens] if self.tokens else []
        return max(parts)

    def refuses(self, spent: Spent) -> bool:
        """Return whether a question is refused with which the sum is so much."""
        return self.then == "refuse" and self.percent(spent) > _WHOLE

    def asks(self, spent: Spent) -> bool:
        """Return whether a person is asked about a question with which the sum is so much."""
        return self.then == "ask" and self.percent(spent) > _WHOLE

    def words(self, spent: Spent) -> str:
        """Return how full it is, in words: `$4.12 of $5 this month`."""
        parts = [f"${spent.cost:.2f} of ${self.cents / 100:g}"] if self.cents else []
        parts += [f"{spent.tokens} of {self.tokens} tokens"] if self.tokens else []
        return f"{' and '.join(parts)} {'today' if self.per == 'day' else 'this month'}"


class Account(NamedTuple):
    """A budget of one period, and of one value where each has its own."""

    budget: ModelBudget
    period: str
    """The day (`2026-11-29`) or month (`2026-11`)."""
    days: range
    """Its days since the Unix epoch."""
    share: str = ""

    @property
    def key(self) -> str:
        """Return what is counted together."""
        return f"{self.budget.name}\0{self.period}\0{self.share}"

    @property
    def title(self) -> str:
        """Return the budget's name for people."""
        return f"{self.budget.name} of {self.share}" if self.budget.each else self.budget.name


def account_of(budget: ModelBudget, now: int, share: str = "") -> Account:
    """Return the account of a budget that counts at a moment (microseconds since the Unix epoch)."""
    day = datetime.fromtimestamp(now / SECOND, UTC).date()
    if budget.per == "day":
        return Account(budget, day.isoformat(), range(now // DAY, now // DAY + 1), share)
    first = now // DAY - day.day + 1
    return Account(budget, day.isoformat()[:7], range(first, first + _length(day)), share)


def _length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def budgets_of(tables: Tables) -> tuple[ModelBudget, ...]:
    """Return the budgets that tables say. Raise SettingsError."""
    budgets = tuple(converted(table, ModelBudget, f"models.budgets, {n}") for n, table in enumerate(tables, 1))
    names = [budget.name for budget in budgets]
    for number, budget in enumerate(budgets, 1):
        if not budget.cents and not budget.tokens:
            raise SettingsError(f"models.budgets, {number} limits nothing", remedy="Give it cents or tokens.")
        if names.count(budget.name) > 1:
            raise SettingsError(f"models.budgets: two are named {budget.name}", remedy="Give each a name of its own.")
    return budgets


class Alarm(msgspec.Struct, frozen=True):
    """An account whose sum, with what is reserved, has reached levels."""

    account: Account
    levels: Sequence[int]
    words: str
    refuses: bool
    """Whether the budget refuses the question with which it has reached them."""


class Alarms:
    """Records the levels that budgets reach."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._recorded: dict[str, set[int]] = {}
        """Levels by account, as far as this process knows."""

    def due(self, account: Account, spent: Spent) -> Alarm | None:
        """Return the alarm of a sum; None if nothing of it is new to this process."""
        percent, known = account.budget.percent(spent), self._recorded.get(account.key, frozenset[int]())
        levels = sorted({level for level in account.budget.alert if level <= percent} - known)
        budget = account.budget
        return Alarm(account, levels, budget.words(spent), budget.refuses(spent)) if levels else None

    async def record(self, alarms: Iterable[Alarm], stream: str, step: str) -> None:
        """Record each level that is not recorded yet; durable when this returns."""
        for alarm in alarms:
            while not await self._record(alarm, stream, step):
                pass  # another process was faster: what it recorded is read

    async def _record(self, alarm: Alarm, stream: str, step: str) -> bool:
        account = alarm.account
        place = f"{KIND}/{account.budget.name}/{sha256(account.key.encode()).removeprefix('sha256:')}"
        head = await self._journal.head(place)
        events = await self._journal.read(place) if head is not None else []
        payloads = [decode(event.kind, event.data) for event in events]
        known = {payload.level for payload in payloads if isinstance(payload, BudgetReached)}
        reached = [
            BudgetReached(
                budget=account.budget.name,
                period=account.period,
                share=account.share,
                level=level,
                taken=alarm.words,
                stream=stream,
                step=step,
            )
            for level in alarm.levels
            if level not in known
        ]
        try:
            if reached:
                await self._journal.commit(self._journal.writer(place, KIND, head).draft(*reached), synced=True)
        except AppendConflictError:
            return False
        self._recorded.setdefault(account.key, set()).update(known, alarm.levels)
        return True
