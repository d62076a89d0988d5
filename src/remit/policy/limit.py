"""Limits: how often, and up to which sum, a rule's calls may be made: in a job or a time, for each principal or tool.

A limit counts calls that were announced and that its rule would match without the limit. An allow
rule matches within the limit; a deny or ask rule matches beyond it. What has been taken is read from the journal and
handed in: a decision stays a function of values.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec

from remit.clock import DAY, SECOND
from remit.policy.checks import Verdict
from remit.policy.decision import Query
from remit.policy.globs import is_glob, name_matches
from remit.policy.table import Table, describe, zone_of
from remit.regex import regex

Per = Literal["job", "day", "week", "month"]
By = Literal["principal", "tool"]

KEYS: Final = ("by", "calls", "max", "per", "pot", "sum", "zone")
"""Every key of a limit's table."""
PERIODS: Final[tuple[Per, ...]] = ("job", "day", "week", "month")
SHARES: Final[tuple[By, ...]] = ("principal", "tool")
_LARGEST: Final = 10**15
_NOTHING: Final = Decimal(0)
_UNTOUCHED: Final = (0, _NOTHING)
_UTC: Final = "UTC"
_NOW: Final = {"job": "in this job", "day": "today", "week": "this week", "month": "this month"}
NAME: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_ARGUMENT: Final = regex(r"([^./]+)(?:/(10{1,9}))?")
"""An argument, and the power of ten that it is divided by, as in `cents/100`."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """At most so many calls, or so large a sum of an argument."""

    per: Per
    """`day` ends at midnight in `zone`, `week` on Sunday's, `month` on its last day's; `job` is a session outside jobs.
    """
    by: tuple[By, ...] = ()
    """Fields of which each value has a limit of its own; empty: all that the rule is about share it."""
    calls: int | None = None
    sum: str = ""
    """The argument that is added up; `cents/100` divides it by a power of ten."""
    sums: tuple[tuple[str, str], ...] = ()
    """The argument of each tool, by name or glob, where they differ; the first that fits counts, names before globs."""
    max: float | None = None
    """The bound that the sum may be at most."""
    zone: str = _UTC
    pot: str = ""
    """The name under which several rules count together; empty: the rule counts alone."""

    def key(self, rule_id: str, query: Query) -> str:
        """Return what is counted together; empty if unknown."""
        own = ":" in rule_id  # a rule that a job brings along counts that job alone
        job = "/".join(query.caller.stream.split("/", 2)[:2]) if own or self.per == "job" else ""
        period = self._period(query.now) if self.per != "job" and query.now > 0 else ""
        if (self.per != "job" and not period) or ((own or self.per == "job") and not job):
            return ""
        name = f"pot\0{self.pot}" if self.pot and not own else rule_id
        key = f"{name}\0{self.per}\0{period}\0{job}"
        for share in self.by:
            key += f"\0{query.caller.principal if share == 'principal' else query.tool.name if query.tool else ''}"
        return key

    def _period(self, now: int) -> str:
        """The day, week or month that a moment lies in."""
        if self.per == "day" and self.zone == _UTC:
            return str(now // DAY)
        day = datetime.fromtimestamp(now / SECOND, zone_of(self.zone)).date()
        if self.per == "week":
            day -= timedelta(days=day.weekday())
        return f"{_first(day) if self.per == 'month' else day} {self.zone}"

    def argument(self, tool: str) -> str:
        """Return the argument of a tool that is added up; empty: none."""
        return self.sum or next((text for pattern, text in self.sums if name_matches(pattern, tool)), "")

    def amount(self, query: Query) -> Decimal | None:
        """Return what a call takes of the sum: 0 without one, None if it is unknown, as for a negative amount."""
        if not self.sum and not self.sums:
            return _NOTHING
        parsed = _ARGUMENT.fullmatch(self.argument(query.tool.name if query.tool else ""))
        value = query.args.get(parsed[1]) if parsed else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
            return None
        return _exact(value) / Decimal(parsed[2] if parsed and parsed[2] else 1)

    def within(self, rule_id: str, query: Query) -> Verdict:
        """Return whether there is room for one more call; None if unknown."""
        taken = query.facts.taken if query.facts is not None else None
        amount, key = self.amount(query), self.key(rule_id, query)
        if taken is None or amount is None or not key:
            return None
        return self.room(*taken.get(key, _UNTOUCHED), amount)

    def room(self, calls: int, total: Decimal, amount: Decimal) -> bool:
        """Return whether a call that takes so much fits, after so many calls with such a sum."""
        if self.calls is not None and calls + 1 > self.calls:
            return False
        return self.max is None or total + amount <= _exact(self.max)

    def canonical(self) -> dict[str, Any]:
        """As JSON, for the policy hash."""
        fields: dict[str, Any] = {"per": self.per, "by": sorted(self.by)}
        if self.calls is not None:
            fields["calls"] = self.calls
        fields |= {"sum": self.sum or dict(self.sums), "max": self.max} if self.sum or self.sums else {}
        fields |= {"zone": self.zone} if self.zone != _UTC else {}
        return fields | ({"pot": self.pot} if self.pot else {})

    def spent(self, taken: tuple[int, Decimal] = _UNTOUCHED) -> str:
        """Return how full it is, in words: `400 of 500 taken today`."""
        calls, total = taken
        parts = [f"{calls} of {self.calls} calls"] if self.calls is not None else []
        parts += [f"{total} of {_exact(self.max)}"] if self.max is not None else []
        return f"{' and '.join(parts)} taken {_NOW[self.per]}"

    def __str__(self) -> str:
        parts = [f"{self.calls} calls"] if self.calls is not None else []
        parts += [f"{self.sum or 'a sum'} up to {self.max:g}"] if self.max is not None else []
        shared = f"pot {self.pot}: " if self.pot else ""
        zone = f" in {self.zone}" if self.zone != _UTC else ""
        return f"{shared}{' and '.join(parts)} per {' and '.join([self.per, *self.by])}{zone}"


def _first(day: date) -> date:
    return day.replace(day=1)


def _exact(number: float) -> Decimal:
    """The decimal number that a person wrote, without the error of a binary fraction."""
    return Decimal(number) if isinstance(number, int) else Decimal(str(number))


def parse_limit(table: Table) -> Limit | None:
    """Return what stands under `limit`. Raises PolicyError."""
    raw = table.raw("limit")
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        raise table.error("limit", f"must be a table, not {describe(raw)}", f"It may hold: {', '.join(KEYS)}.")
    below = Table(raw, f"{table.where}, limit", KEYS)
    calls = below.whole("calls", 1) if "calls" in below else None
    most, sums = below.raw("max"), _sums(below)
    summed = "" if sums else below.text("sum")
    if bool(summed or sums) != (most is not None):
        raise below.error("sum" if summed or sums else "max", "needs the other of sum and max")
    if most is not None and (type(most) not in {int, float} or not 0 <= most < _LARGEST):
        raise below.error("max", f"must be a number from 0, not {describe(most)}")
    if calls is None and not summed and not sums:
        raise table.error("limit", "limits nothing", "Give calls, or sum and max.")
    if wrong := next((text for text in (summed, *dict(sums).values()) if text and not _ARGUMENT.fullmatch(text)), None):
        raise below.error(
            "sum",
            f"is {wrong!r}; only an argument itself can be added up",
            "Write amount, or cents/100: a power of ten.",
        )
    by = below.texts("by")
    if wrong := next((share for share in by if share not in SHARES), None):
        raise below.error("by", f"does not know {wrong!r}", f"Use {' or '.join(SHARES)}.")
    shares = tuple(share for share in SHARES if share in by)
    zone, pot = below.zone(), below.text("pot")
    if pot and not NAME.fullmatch(pot):
        raise below.error("pot", f"is {pot!r}, which is not a name", "Use letters, digits, '_' and '-'.")
    per = below.choice("per", PERIODS)
    return Limit(per=per, by=shares, calls=calls, sum=summed, sums=sums, max=most, zone=zone, pot=pot)


def _sums(table: Table) -> tuple[tuple[str, str], ...]:
    """The arguments of tools: names before globs, longer globs before shorter ones."""
    raw = table.raw("sum")
    if not isinstance(raw, Mapping):
        return ()
    if not raw or not all(isinstance(text, str) and pattern for pattern, text in raw.items()):
        raise table.error("sum", "must name an argument of each tool", 'Write { "refund.*" = "amount" }.')
    return tuple(sorted(raw.items(), key=lambda item: (is_glob(item[0]), -len(item[0]), item[0])))
