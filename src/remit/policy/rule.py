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
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from remit.errors import PolicyError
from remit.policy.callers import parse_callers
from remit.policy.condition import Condition, condition_of
from remit.policy.constraint import Constraint
from remit.policy.decision import EFFECTS, TAINTS, Effect, Query, Taint
from remit.policy.expression import ExpressionError, Node, parse
from remit.policy.globs import is_glob, name_matches
from remit.policy.levels import effective_level
from remit.policy.limit import Limit, parse_limit
from remit.policy.table import Table, describe
from remit.policy.when import parse_when
from remit.policy.window import Window, parse_window
from remit.tools.meta import Level, ToolMeta

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

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TOOL: Final = re.compile(r"[A-Za-z0-9_.*?-]+")
_DURATION: Final = re.compile(r"(?:([0-9]{1,4})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,8})s)?")
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
        return frozenset(one.path for one in self.when if one.bounds)

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
        if self.tools and not any(self.names(pattern, tool.name, key) for pattern in self.tools):
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
        said: dict[str, Any] = {"id": self.id, "effect": self.effect}
        for name in ("tools", "providers", "callers", "approvers"):
            if getattr(self, name):
                said[name] = sorted(getattr(self, name))
        if self.levels:
            said["levels"] = [level.name for level in self.levels]
        if self.when:
            said["when"] = {one.path: {op.name: op.operand for op in one.operators} for one in self.when}
        said |= self._more()
        if self.effect == "ask":
            said |= {"approvals": self.approvals, "expires_s": self.expires_s}
        if self.taint is not None:
            said["taint"] = self.taint
        return said | {"reason": self.reason}

    def _more(self) -> dict[str, Any]:
        """Return what older rules do not say, which leaves their hash as it is."""
        said: dict[str, Any] = {}
        if self.only is not None:
            said["only"] = sorted(self.only)
        if self.unless:
            said["unless"] = {one.path: {op.name: op.operand for op in one.operators} for one in self.unless}
        for name, part in (("during", self.during), ("outside", self.outside), ("limit", self.limit)):
            if part is not None:
                said[name] = part.canonical()
        if self.where is not None:
            said["where"] = str(self.where)
        if self.default:
            said["default"] = True
        return said

    def names(self, pattern: str, name: str, key: str) -> bool:
        """Return whether one of its patterns in `tools` means the tool of this name and key."""
        return name_matches(pattern, name) or pattern == key or (self.wide and name_matches(pattern, key))


def parse_rules(raw: Iterable[object]) -> tuple[Rule, ...]:
    """Every rule of a file. Raises PolicyError for the first that cannot be understood, or two with the same id."""
    rules = tuple(parse_rule(table, number) for number, table in enumerate(raw, 1))
    check_ids(rules)
    return rules


def check_ids(rules: Sequence[Rule]) -> None:
    """Refuse two rules with the same id, since a decision is recorded by it. Raises PolicyError."""
    seen: dict[str, int] = {}
    for rule in rules:
        if rule.id in seen:
            raise PolicyError(
                f'rule {rule.number}, key "id" is "{rule.id}", as is that of rule {seen[rule.id]}',
                remedy="A decision is recorded by the rule's id: give each its own.",
            )
        seen[rule.id] = rule.number


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
        levels=tuple(sorted({_level(table, one) for one in table.texts("levels")})),
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
    if approvers and approvals > len(approvers):
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
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    return sum(int(part or 0) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True)) if found else 0
