"""Facts that a test or an explanation takes as given: the job's input, earlier results, what was taken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from remit.policy.decision import UNKNOWN, Facts, Query
from remit.policy.rules import Policy
from remit.policy.table import Table, describe

KEYS: Final = ("calls", "sum")
"""Every key of what was taken of a limit."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Facts as they are written."""

    input: Any = UNKNOWN
    seen: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The last result of a tool, by its full name."""
    taken: Mapping[str, tuple[int, Decimal]] = msgspec.field(default_factory=dict)
    """Calls and their sum, by the id of the rule whose limit it is."""

    def to(self, policy: Policy, query: Query) -> Query:
        """The query with these facts."""
        if query.tool is None:
            return query
        limits = policy.needs(query.tool, query.key).limits
        spent = {
            one.limit.key(one.rule.id, query): self.taken[one.rule.id] for one in limits if one.rule.id in self.taken
        }
        return replace(query, facts=Facts(input=self.input, seen=self.seen, taken=spent))


def given_of(table: Table) -> Given:
    """Return what stands under `input`, `seen` and `taken`. Raises PolicyError."""
    seen, taken = _tables(table, "seen"), _tables(table, "taken")
    spent: dict[str, tuple[int, Decimal]] = {}
    for rule, raw in taken.items():
        below = Table(raw, f"{table.where}, taken.{rule}", KEYS)
        calls, total = below.raw("calls") or 0, below.raw("sum") or 0
        if type(calls) is not int or type(total) not in {int, float} or calls < 0 or total < 0:
            raise below.error("calls", "and sum must be numbers from 0")
        spent[rule] = (calls, Decimal(str(total)))
    return Given(input=table.raw("input") if "input" in table else UNKNOWN, seen=seen, taken=spent)


def moment_of(table: Table, key: str) -> int:
    """A time in microseconds since the Unix epoch, without an offset in UTC; 0 where none stands there."""
    value = table.raw(key)
    if value is None:
        return 0
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        at = None
    if not isinstance(at, datetime):
        raise table.error(key, f"must be a time, not {describe(value)}", "Write it as 2026-05-01T12:00:00Z.")
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def _tables(table: Table, key: str) -> Mapping[str, Any]:
    value = table.raw(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise table.error(key, f"must be a table, not {describe(value)}")
    return dict(value)
