"""One configured rule: what it says, which calls it matches, how it is read.

A rule matches a call where all that it names matches: tool, provider, level, caller and arguments. A rule that
restricts (deny, ask) reads each of them widely, a rule that loosens (allow) strictly, so that a doubt never lets a
call through:

| part | allow | deny, ask |
|---|---|---|
| `tools` | full name or glob of it, or the exact key | a glob may also match the key |
| `levels` | the level the tool is treated as | that, or the one it claims |
| `when` | every constraint holds | none certainly does not hold |
| `unless` | one certainly does not hold | not every one certainly holds |
| `during`, `outside` | the time is right | the time is not known to be wrong |
| `limit` | there certainly is room | there is not known to be room |
| `where` | holds | holds; if it is unknown, a deny rule asks instead |

`taint` decides none of this: it says what happens to a call that matches if one of its arguments comes from untrusted
text (`Policy.tainted`).

The `when` table of a rule, from TOML to constraints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from remit.canonical import digest
from remit.errors import NotCanonicalError, PolicyError
from remit.policy import globs
from remit.policy.condition import Condition, Window, condition_of, parse_callers, parse_window
from remit.policy.constraint import Constraint, Operator
from remit.policy.decision import EFFECTS, TAINTS, Effect, Query, Taint
from remit.policy.expression import ExpressionError, Node, parse
from remit.policy.globs import is_glob, name_matches
from remit.policy.groups import most_of
from remit.policy.levels import effective_level
from remit.policy.limit import Limit, parse_limit
from remit.policy.table import Table, closest, describe
from remit.regex import regex
from remit.tools.meta import Level, ToolMeta

OPERATORS: Final = (
    "absent", "equals", "glob", "in", "max", "max_length", "min", "not_in", "optional", "prefix", "present",
)  # fmt: skip


def parse_when(table: Table, key: str = "when") -> tuple[Constraint, ...]:
    """The constraints below `when`, or `unless`, sorted by path. Raises PolicyError."""
    raw = table.raw(key)
    if raw is None:
        return ()
    if not isinstance(raw, Mapping) or not raw:
        raise table.error(key, f"must be a table of arguments, not {describe(raw)}")
    constraints: dict[str, Constraint] = {}
    for path, operators in _flatten(table, key, "", raw):
        if path in constraints:
            raise table.error(f"{key}.{path}", "is given twice, once nested and once dotted")
        constraints[path] = _constraint(table, f"{key}.{path}", path, operators)
    return tuple(constraints[path] for path in sorted(constraints))


def _flatten(table: Table, key: str, above: str, raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Paths and their operators; in TOML `a.b = {…}` within braces is a table in a table."""
    for name, value in raw.items():
        path = f"{above}.{name}" if above else name
        if not all(path.split(".")):
            raise table.error(f"{key}.{path}", "is not an argument's name")
        if not isinstance(value, Mapping):
            hint = f"Write {path} = {{ equals = {describe(value)} }}."
            raise table.error(f"{key}.{path}", "must be a table of operators", hint)
        if value and all(isinstance(below, Mapping) and name not in OPERATORS for name, below in value.items()):
            yield from _flatten(table, key, path, value)
        else:
            yield path, value


def _constraint(table: Table, where: str, path: str, raw: Mapping[str, Any]) -> Constraint:
    known = f"The operators are: {', '.join(OPERATORS)}."
    if not raw:
        raise table.error(where, "asks for nothing", known)
    if "absent" in raw and len(raw) > 1:
        hint = "An absent argument has no value to compare. For what may be left out use optional = true."
        raise table.error(where, 'has "absent" and other operators', hint)
    if "optional" in raw and (len(raw) == 1 or "present" in raw):
        raise table.error(
            where, 'has "optional" but no other operator', "Say what the argument must be if it is present."
        )
    operators = []
    for name in sorted(raw):
        if name == "regex":
            raise table.error(f"{where}.regex", "is not supported", _NO_REGEX)
        if name not in _READERS:
            raise table.error(f"{where}.{name}", "is not an operator", closest(name, OPERATORS) or known)
        problem, operand = _READERS[name](raw[name])
        if problem:
            raise table.error(f"{where}.{name}", problem[0], problem[1])
        operators.append(Operator(name, operand))
    if "min" in raw and "max" in raw and raw["min"] > raw["max"]:
        raise table.error(where, "has a min above its max: nothing can meet it")
    return Constraint(path, tuple(operators))


_NO_REGEX: Final = (
    "Use glob, prefix or in: they take linear time on whatever a caller sends, and always cover the whole value."
)
_Problem = tuple[str, str] | None
_Read = tuple[_Problem, Any]


def _true(value: Any) -> _Read:
    other = 'Say the opposite with the other of "absent" and "present".'
    return (None, True) if value is True else (("can only be true", other), None)


def _constant(value: Any) -> _Read:
    try:
        digest(value)  # what is configured is hashed, so it must have a canonical form
    except NotCanonicalError as error:
        return (
            f"contains a value that JSON cannot represent: {error.message}",
            "Use strings, numbers, booleans, lists and tables.",
        ), None
    return None, value


def _constants(value: Any) -> _Read:
    if not isinstance(value, list) or not value:
        return (f"must be a list of values, not {describe(value)}", ""), None
    return _constant(value)


def _number(value: Any) -> _Read:
    if type(value) not in {int, float} or not math.isfinite(value):
        return (f"must be a number, not {describe(value)}", ""), None
    return _constant(value)


def _length(value: Any) -> _Read:
    if type(value) is not int or value < 0:
        return (f"must be a whole number from 0, not {describe(value)}", ""), None
    return _constant(value)


def _texts(value: Any, problem: Callable[[str], _Problem]) -> _Read:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(item, str) and item for item in items):
        return (f"must be a string or a list of strings, none empty, not {describe(value)}", ""), None
    faults = [(item, fault) for item in items if (fault := problem(item))]
    if faults:
        item, (what, remedy) = faults[0]
        return (f"{item!r} {what}", remedy), None
    return _constant(sorted(set(items)))


def _globs(value: Any) -> _Read:
    return _texts(value, globs.path_problem)


def _prefixes(value: Any) -> _Read:
    return _texts(value, globs.plain_problem)


_READERS: Final[dict[str, Callable[[Any], _Read]]] = {
    "absent": _true,
    "equals": _constant,
    "glob": _globs,
    "in": _constants,
    "max": _number,
    "max_length": _length,
    "min": _number,
    "not_in": _constants,
    "optional": _true,
    "prefix": _prefixes,
    "present": _true,
}


_Texts = str | tuple[str, ...]
_Constraints = dict[str, dict[str, Any]]


class RuleTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[policy.rules]]` table: its keys, and their forms for editors. `parse_rule` says what fits."""

    id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")] = ""
    """The name under which decisions are recorded; without it, `rule-<n>`."""
    effect: Effect
    """The decision about the calls that the rule matches."""
    tools: _Texts = ()
    """Full names (`fs.write`), globs (`fs.*`) or keys (`github` is every tool of that MCP server)."""
    levels: Literal["L0", "L1", "L2"] | tuple[Literal["L0", "L1", "L2"], ...] = ()
    """The level that Remit assumes for the tool."""
    providers: _Texts = ()
    """Provider ids or globs: `builtin`, `mcp_*`."""
    callers: _Texts = ()
    """Callers: `alice`, `job:triage`, `session:alice`, `@group`."""
    when: _Constraints = {}
    """Constraints on the arguments: `{ path = { prefix = "docs/" } }`."""
    unless: _Constraints = {}
    """Exceptions, as constraints: the rule does not match if all of them hold."""
    where: str = ""
    """A condition over arguments, caller, the job's input and earlier results."""
    during: dict[str, Any] = {}
    """Times at which the rule applies: `days`, `hours`, `since`, `until`, `zone`."""
    outside: dict[str, Any] = {}
    """Times at which it does not."""
    limit: dict[str, Any] = {}
    """Most calls, or the largest sum: `per`, `by`, and `calls`, or `sum` and `max`."""
    default: bool = False
    """For deny and ask: whether the rule decides only when no other rule does."""
    only: _Texts = ()
    """For allow: the arguments that a call may have."""
    approvals: Annotated[int, msgspec.Meta(ge=1)] = 1
    """For ask: the number of different people who must approve."""
    approvers: _Texts = ()
    """For ask: who may decide, by name."""
    expires: int | str = ""
    """For ask: the time for which the question stays open: seconds, or `"90s"`, `"30m"`, `"2h"`, `"1d12h"`."""
    taint: Taint = "ask"
    """For allow and ask: the decision if an argument that decides what the call reaches comes from untrusted text."""
    reason: str = ""
    """Shown to the refused caller and to the person who is asked."""


KEYS: Final = tuple(sorted(RuleTable.__struct_fields__))
"""Every key of a rule's table."""

_ID: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TOOL: Final = regex(r"[A-Za-z0-9_.*?-]+")
_DURATION: Final = regex(r"(?:([0-9]{1,4})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,8})s)?")
_SECONDS: Final = (86_400, 3_600, 60, 1)
_MAX_EXPIRES: Final = 366 * 86_400


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is applied; an empty tuple restricts nothing."""

    number: int
    """Its place in the file, from 1."""
    id: str
    effect: Effect
    tools: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    providers: tuple[str, ...] = ()
    callers: tuple[str, ...] = ()
    when: tuple[Constraint, ...] = ()
    only: tuple[str, ...] | None = None
    """The arguments that an allowed call may have; None: any."""
    unless: tuple[Constraint, ...] = ()
    """Exceptions: it does not match where all of these hold."""
    during: Window | None = None
    outside: Window | None = None
    limit: Limit | None = None
    where: Node | None = None
    default: bool = False
    """True if it speaks only where no other rule does."""
    approvals: int = 1
    approvers: tuple[str, ...] = ()
    expires_s: int | None = None
    taint: Taint | None = None
    """The treatment of a call with an argument from untrusted text; None: the rule does not say."""
    reason: str = ""

    @property
    def bounded(self) -> frozenset[str]:
        """The arguments that the rule itself limits to what it names."""
        return frozenset(constraint.path for constraint in self.when if constraint.bounds)

    @property
    def looks_for_untrusted(self) -> bool:
        """Return whether it looks for untrusted text in arguments, and so knows no more than what Remit has seen."""
        return self.taint in {"ask", "deny"}

    @property
    def wide(self) -> bool:
        """Return whether the rule restricts, and therefore reads a call widely."""
        return self.effect != "allow"

    @property
    def added(self) -> bool:
        """Return whether a job or a client brings it along; a configured id never contains a colon."""
        return ":" in self.id

    @property
    def conditional(self) -> bool:
        """Return whether it takes more than the tool to know if the rule matches."""
        return bool(self.callers or self.when or self.only is not None or self.demanding)

    @property
    def demanding(self) -> bool:
        """Return whether it asks for more than caller and arguments."""
        parts = (self.during, self.outside, self.limit, self.where)
        return bool(self.unless) or any(part is not None for part in parts)

    @property
    def depends(self) -> bool:
        """Return whether it may match one call of a caller and not another of the same."""
        return bool(self.when or self.only is not None or self.demanding)

    def concerns(self, tool: ToolMeta, key: str) -> bool:
        """Return whether the rule is about this tool, whatever the caller and the arguments."""
        return not self.unconcerned(tool, key)

    def unconcerned(self, tool: ToolMeta, key: str) -> str:
        """Return why the rule is not about this tool; empty where it is."""
        if self.tools and not any(self.means(pattern, tool, key) for pattern in self.tools):
            return f"tools: {tool.name} is not among {', '.join(self.tools)}"
        if self.providers and not any(name_matches(pattern, tool.provider_id) for pattern in self.providers):
            return f"providers: {tool.provider_id} is not among {', '.join(self.providers)}"
        level = effective_level(tool)
        if self.levels and level not in self.levels and not (self.wide and tool.capability_level in self.levels):
            return f"levels: the tool is treated as L{level:d}"
        return ""

    def condition(self) -> Condition:
        """Return whether caller, arguments and the rest are what the rule is about; for tools that it concerns."""
        return condition_of(self)

    def matches(self, query: Query) -> bool:
        """Return whether the rule speaks about this call, or may. No rule does where the tool is unknown."""
        if query.tool is None or not self.concerns(query.tool, query.key):
            return False
        return self.condition()(query) is not False

    def canonical(self) -> dict[str, Any]:
        """Return what the rule says, as JSON, without its place in the file: what the policy hash is made of."""
        fields: dict[str, Any] = {"id": self.id, "effect": self.effect}
        for name in ("tools", "providers", "callers", "approvers"):
            if getattr(self, name):
                fields[name] = sorted(getattr(self, name))
        if self.levels:
            fields["levels"] = [level.name for level in self.levels]
        if self.when:
            fields["when"] = {
                constraint.path: {op.name: op.operand for op in constraint.operators} for constraint in self.when
            }
        fields |= self._more()
        if self.effect == "ask":
            fields |= {"approvals": self.approvals, "expires_s": self.expires_s}
        if self.taint is not None:
            fields["taint"] = self.taint
        return fields | {"reason": self.reason}

    def _more(self) -> dict[str, Any]:
        """Return what older rules do not say, which leaves their hash as it is."""
        more: dict[str, Any] = {}
        if self.only is not None:
            more["only"] = sorted(self.only)
        if self.unless:
            more["unless"] = {
                constraint.path: {op.name: op.operand for op in constraint.operators} for constraint in self.unless
            }
        for name, part in (("during", self.during), ("outside", self.outside), ("limit", self.limit)):
            if part is not None:
                more[name] = part.canonical()
        if self.where is not None:
            more["where"] = str(self.where)
        if self.default:
            more["default"] = True
        return more

    def means(self, pattern: str, tool: ToolMeta, key: str) -> bool:
        """Return whether one of its patterns in `tools` means this tool, by its name, its alias or this key."""
        named = name_matches(pattern, tool.name) or (bool(tool.alias) and name_matches(pattern, tool.alias))
        return named or pattern == key or (self.wide and name_matches(pattern, key))


def parse_rules(raw: Iterable[object]) -> tuple[Rule, ...]:
    """Every rule of a file. Raises PolicyError for the first that cannot be understood, or two with the same id."""
    rules = tuple(parse_rule(table, number) for number, table in enumerate(raw, 1))
    check_ids(rules)
    return rules


def check_ids(rules: Sequence[Rule]) -> None:
    """Refuse two rules with the same id, since a decision is recorded by it. Raises PolicyError."""
    numbers: dict[str, int] = {}
    for rule in rules:
        if rule.id in numbers:
            raise PolicyError(
                f'rule {rule.number}, key "id" is "{rule.id}", as is that of rule {numbers[rule.id]}',
                remedy="A decision is recorded by the rule's id: give each its own.",
            )
        numbers[rule.id] = rule.number


def parse_rule(raw: object, number: int) -> Rule:
    """A rule from its raw table; `number` is its place in the file, from 1.

    Raises PolicyError, which names the rule's number and the key, with a suggestion where something known is close.
    """
    table = Table(raw, _where(raw, number), KEYS)
    identifier = table.text("id", f"rule-{number}")
    if not _ID.fullmatch(identifier):
        raise table.error("id", f"is {identifier!r}", "Use at most 64 letters, digits, '_', '.' and '-'.")
    effect = table.choice("effect", EFFECTS)
    when, unless = parse_when(table), parse_when(table, "unless")
    _check_hosts(table, when if effect == "allow" else unless)
    return Rule(
        number=number,
        id=identifier,
        effect=effect,
        tools=tools_of(table),
        levels=tuple(sorted({_level(table, text) for text in table.texts("levels")})),
        providers=table.texts("providers"),
        callers=parse_callers(table),
        when=when,
        only=_only(table, effect),
        unless=unless,
        during=parse_window(table, "during"),
        outside=parse_window(table, "outside"),
        limit=parse_limit(table),
        where=_where_of(table),
        default=_default(table, effect),
        taint=_taint(table, effect),
        reason=table.text("reason"),
        **_question(table, effect),
    )


def _where(raw: object, number: int) -> str:
    named = raw.get("id") if isinstance(raw, Mapping) else None
    return f"rule {number} ({named})" if isinstance(named, str) and _ID.fullmatch(named) else f"rule {number}"


def tools_of(table: Table) -> tuple[str, ...]:
    """Return what stands under `tools`. Raises PolicyError."""
    tools = table.texts("tools")
    for pattern in tools:
        if not _TOOL.fullmatch(pattern):
            raise table.error(
                "tools", f"holds {pattern!r}, which cannot be a tool's name", "Use letters, digits, . _ - * ?"
            )
        if "__" in pattern:
            dotted = pattern.replace("__", ".")
            raise table.error("tools", f"holds {pattern!r}, a name as models see it", f"Write {dotted!r}.")
    return tools


def _level(table: Table, name: str) -> Level:
    if name not in Level.__members__:
        raise table.error("levels", f"does not know {name!r}", "Use L0, L1 or L2.")
    return Level[name]


def _check_hosts(table: Table, when: Iterable[Constraint]) -> None:
    """Refuse a prefix that ends within a host: `https://a.org` also begins `https://a.org.example.net`."""
    for constraint in when:
        for prefix in (text for op in constraint.operators if op.name == "prefix" for text in op.operand):
            host = prefix.partition("://")[2]
            if host and "/" not in host:
                raise table.error(
                    f"when.{constraint.path}.prefix", f"{prefix!r} does not end the host", f"Write {prefix + '/'!r}."
                )


def _question(table: Table, effect: Effect) -> dict[str, Any]:
    """The keys that say how a question is put."""
    for key in ("approvals", "approvers", "expires"):
        if key in table and effect != "ask":
            raise table.error(key, f'has no meaning where the effect is "{effect}"', 'It belongs to effect = "ask".')
    approvals, approvers = table.whole("approvals", 1), table.texts("approvers")
    if approvers and approvals > most_of(approvers):
        raise table.error("approvals", f"asks for {approvals} of {len(approvers)} approvers")
    for name in approvers:
        if is_glob(name):
            raise table.error("approvers", f"holds the glob {name!r}", "Name every person who may decide.")
    return {"approvals": approvals, "approvers": tuple(sorted(approvers)), "expires_s": _expires(table)}


def _only(table: Table, effect: Effect) -> tuple[str, ...] | None:
    """Return what stands under `only`: names of arguments, maybe none."""
    if "only" not in table:
        return None
    if effect != "allow":
        raise table.error("only", f'has no meaning where the effect is "{effect}"', 'It belongs to effect = "allow".')
    return () if table.raw("only") == [] else table.texts("only")


def _where_of(table: Table) -> Node | None:
    """The condition under `where`."""
    if "where" not in table:
        return None
    try:
        return parse(table.text("where"))
    except ExpressionError as error:
        raise table.error("where", str(error), "See docs/policy.md for what a condition can contain.") from error


def _default(table: Table, effect: Effect) -> bool:
    value = table.raw("default")
    if value not in {None, True, False}:
        raise table.error("default", f"must be true or false, not {describe(value)}")
    if value and effect == "allow":
        raise table.error(
            "default",
            'has no meaning where the effect is "allow"',
            "Remove `default`: any other rule wins over an allow rule anyway.",
        )
    return bool(value)


def _taint(table: Table, effect: Effect) -> Taint | None:
    """Return what stands under `taint`, which may only be stricter than the effect itself where that is to ask."""
    if "taint" not in table:
        return None
    taint = table.choice("taint", TAINTS)
    if effect == "deny":
        raise table.error("taint", 'has no meaning where the effect is "deny"', "Leave it out.")
    if effect == "ask" and taint == "allow":
        raise table.error("taint", 'is "allow", but the rule asks in any case', 'Use "deny", or leave it out.')
    return taint


def _expires(table: Table) -> int | None:
    if "expires" not in table:
        return None
    value = table.raw("expires")
    seconds = value if type(value) is int else _duration(value)
    if not 0 < seconds <= _MAX_EXPIRES:
        raise table.error("expires", f"is {value!r}", 'Write a time up to a year, as "90s", "30m", "2h", "1d12h".')
    return seconds


def _duration(text: object) -> int:
    """Seconds of a duration such as `1d12h`; 0 for any other text."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    return sum(int(part or 0) * unit for part, unit in zip(match.groups(), _SECONDS, strict=True)) if match else 0
