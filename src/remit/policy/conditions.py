"""Each condition of a rule in words: whether it holds, does not, or is unknown, and what it saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from remit.policy.checks import Verdict, every
from remit.policy.constraint import Constraint, find
from remit.policy.decision import UNKNOWN, Query
from remit.policy.evaluation import compiled, verdict
from remit.policy.expression import Node, Path, parts_of, paths_of
from remit.policy.places import HOST, places_of
from remit.policy.rule import Rule
from remit.policy.table import describe

MEETS = {True: "holds", False: "does not hold", None: "unknown"}


def written(rule: Rule) -> tuple[str, ...]:
    """Everything that a rule asks for beside tool and caller, as a person reads it."""
    parts = [f"when {one}" for one in rule.when]
    parts += [f"only {', '.join(rule.only) or 'no arguments'}"] if rule.only is not None else []
    parts += [f"unless {'; '.join(map(str, rule.unless))}"] if rule.unless else []
    named = (("during", rule.during), ("outside", rule.outside), ("limit", rule.limit), ("where", rule.where))
    parts += [f"{name} {part}" for name, part in named if part is not None]
    return (*parts, "no other rule matches") if rule.default else tuple(parts)


def explained(rule: Rule, query: Query) -> Iterator[tuple[Verdict, str]]:
    """Each condition besides caller, `when` and `only`: whether it lets the rule match, and what was found."""
    if rule.unless:
        schema = query.tool.input_schema if query.tool is not None else None
        verdicts = [one.judge(wide=not rule.wide)(query.args, schema) for one in rule.unless]
        excepted = every(verdicts)
        words = "; ".join(worded("unless", one, query, found) for one, found in zip(rule.unless, verdicts, strict=True))
        yield None if excepted is None else not excepted, words
    for name, window, inside in (("during", rule.during, True), ("outside", rule.outside, False)):
        if window is not None:
            within = window.holds(query.now)
            meets = within if within is None or inside else not within
            yield meets, f"{name} {window}: {MEETS[meets]}"
    if rule.limit is not None:
        yield _limit(rule, query)
    for part in parts_of(rule.where) if rule.where is not None else ():
        found = verdict(compiled(part), query)
        yield found, f"where {part}: {MEETS[found]}{_values(part, query)}"


def used_up(rules: Iterable[Rule], query: Query) -> str:
    """Name the rules that would allow a call if their limits left room; empty: there are none."""
    spent = [
        rule
        for rule in rules
        if rule.effect == "allow" and rule.limit is not None and rule.limit.within(rule.id, query) is False
        if msgspec.structs.replace(rule, limit=None).matches(query)
    ]
    return " ".join([f"Rule {rule.id} would allow it, but its limit is reached: {rule.limit}." for rule in spent])


def worded(key: str, constraint: Constraint, query: Query, found: Verdict) -> str:
    """Return whether a constraint holds, in words."""
    values, missing = find(query.args, constraint.path)
    schema = query.tool.input_schema if query.tool is not None else None
    if constraint.path == HOST and (places := places_of(schema)).urls:
        values, missing = places.hosts(query.args)
    if missing:
        seen = "is missing" if not values else "is missing in places"
    else:
        seen = "is " + ", ".join(describe(value) for value in values[:3])
    return f"{key} {constraint}: {MEETS[found]}, {constraint.path} {seen}"


def _limit(rule: Rule, query: Query) -> tuple[Verdict, str]:
    limit = rule.limit
    if limit is None:
        return True, ""
    within = limit.within(rule.id, query)
    taken = query.facts.taken if query.facts is not None else None
    calls, total = (taken or {}).get(limit.key(rule.id, query), (0, 0))
    where = "unknown" if within is None else "is not reached" if within else "is reached"
    spent = f", {calls} calls" + (f" and {total} of {limit.sum}" if limit.sum else "") + " so far" if taken else ""
    return None if within is None else within is not rule.wide, f"limit {limit}: {where}{spent}"


def _values(part: Node, query: Query) -> str:
    """Return what a condition looked at."""
    found = [(path, compiled(path)(query)) for path in dict.fromkeys(paths_of(part))]
    return "".join(f", {path} is {_shown(path, value)}" for path, value in found[:4])


def _shown(path: Path, value: Any) -> str:
    if value is not UNKNOWN:
        return describe(value)
    return "unknown" if path.root or path.parts else "not there: this job has no result of it"
