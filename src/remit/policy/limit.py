"""Limits: how often, and up to which sum, a rule's calls may be made: per job or day, and for each principal or tool.

A limit counts calls that were announced and that its rule would match without the limit. An allow
rule matches within the limit; a deny or ask rule matches beyond it. What has been taken is read from the journal and
handed in: a decision stays a function of values.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec

from remit.clock import DAY
from remit.policy.checks import Verdict
from remit.policy.decision import Query
from remit.policy.table import Table, describe

Per = Literal["job", "day"]
By = Literal["principal", "tool"]

KEYS: Final = ("by", "calls", "max", "per", "sum")
"""Every key of a limit's table."""
PERIODS: Final[tuple[Per, ...]] = ("job", "day")
SHARES: Final[tuple[By, ...]] = ("principal", "tool")
_LARGEST: Final = 10**15
_NOTHING: Final = Decimal(0)
_UNTOUCHED: Final = (0, _NOTHING)


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """At most so many calls, or so large a sum of an argument."""

    per: Per
    """`day` ends at midnight UTC; `job` is a session outside jobs."""
    by: tuple[By, ...] = ()
    """Fields of which each value has a limit of its own; empty: all that the rule is about share it."""
    calls: int | None = None
    sum: str = ""
    """The argument that is added up."""
    max: float | None = None
    """The bound that the sum may be at most."""

    def key(self, rule_id: str, query: Query) -> str:
        """Return what is counted together; empty if unknown."""
        own = ":" in rule_id  # a rule that a job brings along counts that job alone
        job = "/".join(query.caller.stream.split("/", 2)[:2]) if own or self.per == "job" else ""
        day = str(query.now // DAY) if self.per == "day" and query.now > 0 else ""
        if (self.per == "day" and not day) or ((own or self.per == "job") and not job):
            return ""
        key = f"{rule_id}\0{self.per}\0{day}\0{job}"
        for share in self.by:
            key += f"\0{query.caller.principal if share == 'principal' else query.tool.name if query.tool else ''}"
        return key

    def amount(self, query: Query) -> Decimal | None:
        """Return what a call takes of the sum: 0 without one, None if it is unknown, as for a negative amount."""
        if not self.sum:
            return _NOTHING
        value = query.args.get(self.sum)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
            return None
        return _exact(value)

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
        said: dict[str, Any] = {"per": self.per, "by": sorted(self.by)}
        if self.calls is not None:
            said["calls"] = self.calls
        return said | ({"sum": self.sum, "max": self.max} if self.sum else {})

    def __str__(self) -> str:
        parts = [f"{self.calls} calls"] if self.calls is not None else []
        parts += [f"{self.sum} up to {self.max:g}"] if self.max is not None else []
        return f"{' and '.join(parts)} per {' and '.join([self.per, *self.by])}"


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
    summed, most = below.text("sum"), below.raw("max")
    if bool(summed) != (most is not None):
        raise below.error("sum" if summed else "max", "needs the other of sum and max")
    if most is not None and (type(most) not in {int, float} or not 0 <= most < _LARGEST):
        raise below.error("max", f"must be a number from 0, not {describe(most)}")
    if calls is None and not summed:
        raise table.error("limit", "limits nothing", "Give calls, or sum and max.")
    if "." in summed:
        raise below.error("sum", f"is {summed!r}; only an argument itself can be added up")
    by = below.texts("by")
    if wrong := next((one for one in by if one not in SHARES), None):
        raise below.error("by", f"does not know {wrong!r}", f"Use {' or '.join(SHARES)}.")
    shares = tuple(one for one in SHARES if one in by)
    return Limit(per=below.choice("per", PERIODS), by=shares, calls=calls, sum=summed, max=most)
