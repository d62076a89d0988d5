"""Whether a rule matches a call of a tool that it concerns: caller, arguments, time, limit, `where`, in this order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from remit.policy.callers import caller_matcher
from remit.policy.checks import Verdict, every
from remit.policy.constraint import Constraint
from remit.policy.decision import Effect, Query
from remit.policy.evaluation import compiled
from remit.policy.expression import Node
from remit.policy.limit import Limit
from remit.policy.window import Window

Condition = Callable[[Query], Verdict]
"""Whether a rule matches. None, of a deny rule alone: its `where` is unknown, so a person is asked."""


class Conditioned(Protocol):
    """The demands of a rule, as far as it takes more than the tool to know it."""

    @property
    def id(self) -> str: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def wide(self) -> bool: ...
    @property
    def demanding(self) -> bool: ...
    @property
    def callers(self) -> tuple[str, ...]: ...
    @property
    def when(self) -> tuple[Constraint, ...]: ...
    @property
    def only(self) -> tuple[str, ...] | None: ...
    @property
    def unless(self) -> tuple[Constraint, ...]: ...
    @property
    def during(self) -> Window | None: ...
    @property
    def outside(self) -> Window | None: ...
    @property
    def limit(self) -> Limit | None: ...
    @property
    def where(self) -> Node | None: ...


def condition_of(rule: Conditioned) -> Condition:
    """The condition of a rule, as a function; for tools that it concerns."""
    plain = _plain(rule) if rule.callers or rule.when or rule.only is not None or not rule.demanding else None
    exempt, timed, limited, where = _exempt(rule), _timed(rule), _limited(rule), _where(rule)
    checks = [check for check in (plain, exempt, timed, limited) if check is not None]
    if not checks or (where is None and len(checks) == 1):
        return where or checks[0]

    def met(query: Query) -> Verdict:
        for check in checks:
            if not check(query):
                return False
        return where is None or where(query)

    return met


def _plain(rule: Conditioned) -> Callable[[Query], bool]:
    """Caller and arguments alone, as most rules have it."""
    calls = caller_matcher(rule.callers) if rule.callers else None
    holds = [one.judge(wide=rule.wide) for one in rule.when]
    only = None if rule.only is None else frozenset(rule.only)
    wide = rule.wide

    def met(query: Query) -> bool:
        if calls and not calls(query.caller):
            return False
        if only is not None and not only.issuperset(query.args):
            return False
        schema = query.tool.input_schema if query.tool is not None else None
        for judge in holds:
            verdict = judge(query.args, schema)
            if verdict is False or (verdict is None and not wide):
                return False
        return True

    return met


def _exempt(rule: Conditioned) -> Callable[[Query], bool] | None:
    """Return whether `unless` lets the rule match."""
    wide, judges = rule.wide, [one.judge(wide=not rule.wide) for one in rule.unless]

    def met(query: Query) -> bool:
        schema = query.tool.input_schema if query.tool is not None else None
        excepted = every(judge(query.args, schema) for judge in judges)
        return excepted is False or (excepted is None and wide)

    return met if judges else None


def _timed(rule: Conditioned) -> Callable[[Query], bool] | None:
    """Return whether the time is right."""
    wide, during, outside = rule.wide, rule.during, rule.outside

    def met(query: Query) -> bool:
        for window, inside in ((during, True), (outside, False)):
            within = inside if window is None else window.holds(query.now)
            if within is (not inside) or (within is None and not wide):
                return False
        return True

    return met if during is not None or outside is not None else None


def _limited(rule: Conditioned) -> Callable[[Query], bool] | None:
    """Return whether there is room for an allow rule, or none that is known of for a deny or ask rule."""
    wide, limit, name = rule.wide, rule.limit, rule.id

    def met(query: Query) -> bool:
        within = limit is None or limit.within(name, query)
        return within is (not wide) or (within is None and wide)

    return met if limit is not None else None


def _where(rule: Conditioned) -> Condition | None:
    if rule.where is None:
        return None
    evaluate, unknown = compiled(rule.where), None if rule.effect == "deny" else rule.wide

    def met(query: Query) -> Verdict:
        found = evaluate(query)
        return found if found is True or found is False else unknown

    return met
