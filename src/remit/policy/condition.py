"""Whether a rule matches a call of a tool that it concerns: caller, arguments, time, limit, `where`, in this order.

The callers that a rule is about: patterns over callers.

| pattern | covers |
|---|---|
| `alice` | the principal, whatever it calls from; a glob, as everywhere here |
| `principal:a:b` | the same, for a principal whose name holds a colon |
| `job:triage` | jobs of the recipe, no matter who started them |
| `job:triage/alice` | those of them that the principal started |
| `plan:triage`, `plan:triage/alice` | the same for jobs that follow a plan, which anyone can name as they like |
| `session:alice` | sessions of the principal; likewise `ticket:`, `http:` and `mcp:` |

When a rule holds: days of the week, hours of the day, and between two moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final, Protocol

import msgspec

from remit.policy.checks import Verdict, every
from remit.policy.constraint import Constraint
from remit.policy.decision import CALLER_KINDS, Caller, Effect, Query
from remit.policy.expression import Node, compiled
from remit.policy.globs import name_matcher
from remit.policy.limit import Limit
from remit.policy.table import Table, closest, describe, zone_of
from remit.regex import regex

_PRINCIPAL: Final = "principal"
_JOBS: Final = frozenset({"job", "plan"})


def caller_matcher(patterns: Iterable[str]) -> Callable[[Caller], bool]:
    """Return whether one of the patterns covers a caller, as a function; no patterns cover everyone."""
    checks = [_matcher(pattern) for pattern in patterns]
    if len(checks) == 1:
        return checks[0]
    return lambda caller: not checks or any(check(caller) for check in checks)


def _matcher(pattern: str) -> Callable[[Caller], bool]:
    kind, colon, rest = pattern.partition(":")
    if not colon or kind == _PRINCIPAL:
        anywhere = name_matcher(rest if colon else pattern)
        return lambda caller: bool(anywhere(caller.principal))
    recipe, slash, person = rest.partition("/") if kind in _JOBS else ("*", "/", rest)
    started = name_matcher(recipe)
    if not slash:
        return lambda caller: caller.kind == kind and bool(started(caller.recipe))
    asks = name_matcher(person)
    return lambda caller: bool(caller.kind == kind and started(caller.recipe) and asks(caller.principal))


def parse_callers(table: Table) -> tuple[str, ...]:
    """Return what stands under `callers`. Raises PolicyError."""
    callers = table.texts("callers")
    kinds = (*CALLER_KINDS, _PRINCIPAL)
    for pattern in callers:
        kind, colon, rest = pattern.partition(":")
        if colon and kind not in kinds:
            remedy = closest(kind, kinds) or f'Write "principal:{pattern}" for a principal of that name.'
            raise table.error("callers", f"holds {pattern!r}, but {kind!r} is not a kind of caller", remedy)
        if colon and not all(rest.split("/", 1) if kind in _JOBS else [rest]):
            every = f'Write "{kind}:*" for all of them.'
            raise table.error("callers", f"holds {pattern!r}, which names no caller", every)
    return callers


KEYS: Final = ("days", "hours", "since", "until", "zone")
"""Every key of a window's table."""

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS: Final = regex(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]|24):([0-5][0-9])")
_MICROSECONDS: Final = 1_000_000
_DAY_MINUTES: Final = 24 * 60


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A span of time that comes back, or does not; what is empty restricts nothing."""

    days: tuple[int, ...] = ()
    """0 is Monday."""
    hours: tuple[int, int] | None = None
    """Minutes after midnight, the second not included; a window over midnight belongs to the day it begins on."""
    since: int | None = None
    """Microseconds since the Unix epoch."""
    until: int | None = None
    """Not included."""
    zone: str = "UTC"

    def holds(self, now: int) -> Verdict:
        """Return whether a moment, in microseconds since the Unix epoch, is within; None for 0, which is unknown."""
        if now <= 0:
            return None
        if (self.since is not None and now < self.since) or (self.until is not None and now >= self.until):
            return False
        if not self.days and self.hours is None:
            return True
        local = datetime.fromtimestamp(now // _MICROSECONDS, zone_of(self.zone))
        day, minute = local.weekday(), local.hour * 60 + local.minute
        if self.hours is not None:
            first, last = self.hours
            if first < last:
                if not first <= minute < last:
                    return False
            elif minute < last:
                day = (day - 1) % len(_DAYS)
            elif minute < first:
                return False
        return not self.days or day in self.days

    def canonical(self) -> dict[str, Any]:
        """As JSON, for the policy hash."""
        fields = {"days": list(self.days), "hours": list(self.hours or ()), "since": self.since, "until": self.until}
        return {name: value for name, value in fields.items() if value not in ([], None)} | {"zone": self.zone}

    def __str__(self) -> str:
        parts = [", ".join(_DAYS[day] for day in self.days)] if self.days else []
        if self.hours is not None:
            parts.append("-".join(f"{at // 60:02}:{at % 60:02}" for at in self.hours))
        parts += [f"since {_shown(self.since)}"] if self.since is not None else []
        parts += [f"until {_shown(self.until)}"] if self.until is not None else []
        return f"{' '.join(parts)} {self.zone}"


def parse_window(table: Table, key: str) -> Window | None:
    """Return what stands under `during` or `outside`. Raises PolicyError."""
    raw = table.raw(key)
    if raw is None:
        return None
    if not isinstance(raw, Mapping) or not raw:
        raise table.error(key, f"must be a table, not {describe(raw)}", f"It may hold: {', '.join(KEYS)}.")
    below = Table(raw, f"{table.where}, {key}", KEYS)
    zone = below.zone()
    since, until = _moment(below, "since", zone), _moment(below, "until", zone)
    window = Window(days=_days(below), hours=_hours(below), since=since, until=until, zone=zone)
    if since is not None and until is not None and since >= until:
        raise below.error("until", "is not after since: nothing is between them")
    if not window.days and window.hours is None and since is None and until is None:
        raise table.error(key, "names no time", "Give days, hours, since or until.")
    return window


def _days(table: Table) -> tuple[int, ...]:
    days: set[int] = set()
    for text in table.texts("days"):
        first, dash, last = text.partition("-")
        if first not in _DAYS or (dash and last not in _DAYS):
            raise table.error("days", f"does not know {text!r}", f"Write {', '.join(_DAYS)}, or two such as mon-fri.")
        begin, end = _DAYS.index(first), _DAYS.index(last if dash else first)
        days.update((begin + step) % len(_DAYS) for step in range((end - begin) % len(_DAYS) + 1))
    return tuple(sorted(days))


def _hours(table: Table) -> tuple[int, int] | None:
    if "hours" not in table:
        return None
    text = table.text("hours")
    match = _HOURS.fullmatch(text)
    first, last = (int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])) if match else (0, 0)
    if first == last or last > _DAY_MINUTES:
        raise table.error("hours", f"is {text!r}", 'Write hours of one day, such as "09:00-17:00" or "22:00-06:00".')
    return first, last


def _moment(table: Table, key: str, zone: str) -> int | None:
    """A TOML date or time, or a text of one; without an offset it is in the window's zone."""
    value = table.raw(key)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        at = None
    if isinstance(at, date) and not isinstance(at, datetime):
        at = datetime(at.year, at.month, at.day)  # noqa: DTZ001 - it gets its zone below
    if not isinstance(at, datetime):
        raise table.error(
            key, f"must be a time, not {describe(value)}", "Write it as 2026-05-01 or 2026-05-01T12:00:00Z."
        )
    return int((at if at.tzinfo else at.replace(tzinfo=zone_of(zone))).timestamp() * _MICROSECONDS)


def _shown(moment: int) -> str:
    return datetime.fromtimestamp(moment / _MICROSECONDS, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


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
    holds = [condition.judge(wide=rule.wide) for condition in rule.when]
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
    wide, judges = rule.wide, [condition.judge(wide=not rule.wide) for condition in rule.unless]

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
        truth = evaluate(query)
        return truth if truth is True or truth is False else unknown

    return met
