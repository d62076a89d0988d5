"""Pots: limits under a name, which several rules share: `limit = { pot = "refunds" }` in a rule.

What `[policy.pots]` says is put in the place of the name before a rule is read, so that the policy hash covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from remit.errors import PolicyError
from remit.policy.limit import NAME, parse_limit
from remit.policy.table import Table, closest


def filled(raw: Iterable[object], pots: Mapping[str, Any]) -> list[object]:
    """Raw rule tables with pots in the place of their names. Raises PolicyError for a pot that there is not."""
    for name, pot in pots.items():
        if not NAME.fullmatch(name):
            raise PolicyError(f"policy.pots: {name!r} is not a name", remedy="Use letters, digits, '_' and '-'.")
        parse_limit(Table({"limit": pot}, f"policy.pots.{name}", ("limit",)))
    return [_filled(rule, pots) for rule in raw]


def _filled(rule: object, pots: Mapping[str, Any]) -> object:
    limit = rule.get("limit") if isinstance(rule, Mapping) else None
    if not isinstance(rule, Mapping) or not isinstance(limit, Mapping) or "pot" not in limit:
        return rule
    name, where = limit["pot"], f'rule ({rule.get("id", "without an id")}), key "limit"'
    if len(limit) > 1:
        raise PolicyError(f"{where} names a pot and more", remedy=f"Write the rest into [policy.pots.{name}].")
    if name not in pots:
        raise PolicyError(
            f"{where} names the pot {name!r}, which there is not",
            remedy=closest(name, pots) or f"Add it: [policy.pots.{name}].",
        )
    return {**rule, "limit": {**pots[name], "pot": name}}
