"""Findings of what is wrong or useless in a policy, found without a call: `remit policy lint`.

It knows the rules and the tools of a catalog, and says only what holds for every call: a rule it is silent about may
still never match in practice.

Findings of lint in `where`: names that no argument or result has, and comparisons that never come to anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, Literal, cast

import msgspec

from remit.errors import PolicyError
from remit.origins.roles import FORMATS, KEYWORD, role_of_name
from remit.policy import expression
from remit.policy.constraint import declares
from remit.policy.expression import COMPARISONS, Apply, Items, Node, Path, below_of, paths_of
from remit.policy.globs import is_glob
from remit.policy.groups import NO_GROUPS, Groups, expanded, most_of
from remit.policy.levels import default_for, effective_level
from remit.policy.places import places_of
from remit.policy.rule import Rule, check_ids, parse_rule
from remit.policy.table import closest
from remit.tools.meta import JsonSchema, Level, ToolMeta
from remit.tools.names import key_of

Problem = tuple[str, str, str]
"""The kind of finding, its message and its remedy."""

_KINDS: Final = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean", "array": "list"}
_OF_VALUES: Final[dict[type, str]] = {str: "text", int: "number", float: "number", bool: "boolean"}
_TEXTS: Final = frozenset({"kind", "principal", "recipe", "tool"})
_ORDERED: Final = frozenset({"<", "<=", ">", ">="})


def problems(where: Node, about: Sequence[ToolMeta], known: Mapping[str, ToolMeta]) -> Iterator[Problem]:
    """Give what is wrong with a condition of a rule about these tools."""
    for path in dict.fromkeys(paths_of(where)):
        if path.tool:
            yield from _result(path, known)
        elif path.root == "args" and path.parts:
            yield from _argument(path, about)
    yield from _comparisons(where, about, known)


def _argument(path: Path, about: Sequence[ToolMeta]) -> Iterator[Problem]:
    name = str(path.parts[0])
    if not any(declares(tool.input_schema, name) for tool in about):
        names = {argument for tool in about for argument in (tool.input_schema or {}).get("properties", {})}
        yield "unknown-argument", f"names the argument {name!r}, which none of its tools has", closest(name, names)


def _result(path: Path, known: Mapping[str, ToolMeta]) -> Iterator[Problem]:
    tool = known.get(path.tool)
    if tool is None:
        yield "unknown-result", f"uses results of {path.tool}, but no tool has that name", closest(path.tool, known)
    elif tool.output_schema is not None and path.parts:
        name, names = path.parts[0], tool.output_schema.get("properties")
        closed = bool(names) and not tool.output_schema.get("additionalProperties")
        if isinstance(name, str) and closed and not declares(tool.output_schema, name):
            yield "unknown-result", f"asks for {name!r}, which {path.tool} does not return", closest(name, names or {})


def _comparisons(node: Node, about: Sequence[ToolMeta], known: Mapping[str, ToolMeta]) -> Iterator[Problem]:
    if isinstance(node, Apply) and node.name in COMPARISONS:
        kinds = [_kind(operand, about, known) for operand in node.operands]
        if node.name in {"in", "not in"}:
            wrong = kinds[1] not in {"", "list"}
        else:
            wrong = "" not in kinds and kinds[0] != kinds[1]
            wrong = wrong or (node.name in _ORDERED and bool({"boolean", "list"} & set(kinds)))
        if wrong:
            yield "never-told", f"can never tell whether {node}", "Compare values of one type."
    for below in below_of(node):
        yield from _comparisons(below, about, known)


def _kind(node: Node, about: Sequence[ToolMeta], known: Mapping[str, ToolMeta]) -> str:
    """Return what sort of value a node gives; empty: it is not known, or null."""
    if isinstance(node, expression.Literal):
        return _OF_VALUES.get(type(node.value), "")
    if isinstance(node, Items):
        return "list"
    if isinstance(node, Apply):
        return "number" if node.name in {"+", "-", "*", "len", "sum", "age"} else "text" if node.name == "lower" else ""
    if node.tool:
        tool = known.get(node.tool)
        return _of_schema(tool.output_schema if tool is not None else None, node.parts)
    if node.root in _TEXTS:
        return "text"
    kinds = {_of_schema(tool.input_schema, node.parts) for tool in about} if node.root == "args" else {""}
    return kinds.pop() if len(kinds) == 1 else ""


def _of_schema(schema: JsonSchema | None, parts: tuple[str | int, ...]) -> str:
    node: Any = schema
    for part in parts:
        properties = node.get("properties") if isinstance(node, dict) else None
        node = properties.get(part) if isinstance(properties, dict) else None
    kind = node.get("type") if isinstance(node, dict) else None
    return _KINDS.get(kind, "") if isinstance(kind, str) else ""


Kind = Literal[
    "invalid",
    "dead",
    "dead-pattern",
    "shadowed",
    "contradiction",
    "nobody-approves",
    "unknown-argument",
    "unknown-result",
    "never-told",
    "unbounded",
    "loose",
    "open-arguments",
    "redundant",
    "open-taint",
    "idle-taint",
    "partial-taint",
]
Severity = Literal["error", "warning"]

KINDS: Final[dict[Kind, str]] = {
    "invalid": "The rule is not valid; Remit does not start with it.",
    "dead": "The rule matches no tool of the catalog.",
    "dead-pattern": "A pattern of the rule matches no tool of the catalog, though others do.",
    "shadowed": "The rule never decides: wherever it matches, a stricter or earlier one does.",
    "contradiction": "Two rules with the same conditions have different effects; the stricter one counts.",
    "nobody-approves": "Two ask rules about the same tool leave too few people who may approve.",
    "unknown-argument": "None of the rule's tools has an argument of this name.",
    "unknown-result": "`where` uses a value that no tool returns.",
    "never-told": "`where` compares values of different types, so its result is always unknown.",
    "unbounded": "The rule allows a tool of level L2 whatever its arguments are.",
    "loose": "The rule limits a tool of level L2 only by a prefix or a glob.",
    "open-arguments": "The rule limits a tool that writes, and leaves an argument open that decides what it reaches.",
    "redundant": "The rule allows only what runs without it.",
    "open-taint": "The rule lets untrusted text choose any argument of a tool that writes or executes.",
    "idle-taint": "The rule has `taint`, but its tools only read, or one that writes has no argument with a role.",
    "partial-taint": "The rule has `taint` for callers of whose agents Remit knows only what it gave them itself.",
}
"""The findings that lint looks for."""

ERRORS: Final = frozenset({"invalid", "contradiction", "nobody-approves", "unknown-argument", "unknown-result"})
"""Kinds that are an error, not a warning."""
_FAR: Final = ("mcp:", "http:", "session:")
"""Callers outside jobs."""
_STRICTNESS: Final = {"allow": 0, "ask": 1, "deny": 2}


class LintFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look at."""

    kind: Kind
    severity: Severity
    number: int
    """The rule's place in the file, from 1."""
    rule_id: str
    message: str
    remedy: str = ""


class _Scope:
    """The rules, and for each the tools it is about."""

    def __init__(self, rules: Sequence[Rule], tools: Sequence[ToolMeta]) -> None:
        self.rules = rules
        self.tools = {tool.name: (tool, key_of(tool.name)) for tool in tools}
        self.about = {rule.id: self._about(rule) for rule in rules}

    def of(self, rule: Rule) -> list[ToolMeta]:
        """The tools a rule is about."""
        return [self.tools[name][0] for name in sorted(self.about[rule.id])]

    def _about(self, rule: Rule) -> set[str]:
        return {name for name, (tool, key) in self.tools.items() if rule.concerns(tool, key)}


def lint(
    raw: Iterable[object],
    tools: Sequence[ToolMeta],
    groups: Groups = NO_GROUPS,
    unlisted: Sequence[ToolMeta] = (),
) -> list[LintFinding]:
    """Every finding in the raw `[[policy.rules]]`, in the order of the rules; never raises for a rule that is wrong.

    Without tools, only what needs no catalog is looked for. Of `unlisted`, tools that no catalog lists, those count
    that a rule names by more than a star.
    """
    rules, findings = _parse(raw, groups)
    named = [(rule, pattern) for rule in rules for pattern in rule.tools if not is_glob(pattern[:1])]
    about = unlisted if tools else ()
    more = [tool for tool in about if any(rule.means(pattern, tool, tool.name) for rule, pattern in named)]
    return _sorted([*findings, *_judged(rules, [*tools, *more])])


def lint_rules(rules: Sequence[Rule], tools: Sequence[ToolMeta]) -> list[LintFinding]:
    """The same for rules that were understood."""
    return _sorted(_judged(rules, tools))


def _judged(rules: Sequence[Rule], tools: Sequence[ToolMeta]) -> Iterator[LintFinding]:
    scope = _Scope(rules, tools)
    for rule in rules:
        if tools and not scope.about[rule.id]:
            yield _dead(rule, scope)
            continue
        yield from _overruled(rule, scope)
        for look in (_patterns, _arguments, _conditions, _unbounded, _open, _redundant, _taint) if tools else ():
            yield from look(rule, scope)
    yield from _approvers(scope)


def _sorted(findings: Iterable[LintFinding]) -> list[LintFinding]:
    return sorted(findings, key=lambda finding: (finding.number, finding.kind, finding.message))


def _parse(raw: Iterable[object], groups: Groups) -> tuple[list[Rule], list[LintFinding]]:
    rules: list[Rule] = []
    findings: list[LintFinding] = []
    for number, table in enumerate(raw, 1):
        try:
            rule = parse_rule(expanded([table], groups)[0], number)
            check_ids([*rules, rule])
        except PolicyError as error:
            named: Any = table.get("id") if isinstance(table, Mapping) else None
            findings.append(
                LintFinding(
                    kind="invalid",
                    severity="error",
                    number=number,
                    rule_id=named if isinstance(named, str) else f"rule-{number}",
                    message=error.message,
                    remedy=error.remedy,
                )
            )
        else:
            rules.append(rule)
    return rules, findings


def _finding(kind: Kind, rule: Rule, message: str, remedy: str = "") -> LintFinding:
    severity: Severity = "error" if kind in ERRORS else "warning"
    return LintFinding(
        kind=kind, severity=severity, number=rule.number, rule_id=rule.id, message=message, remedy=remedy
    )


def _dead(rule: Rule, scope: _Scope) -> LintFinding:
    guesses = (_guess(pattern, scope) for pattern in rule.tools)
    return _finding("dead", rule, "matches no tool of the catalog", next(filter(None, guesses), ""))


def _patterns(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    for pattern in rule.tools:
        if not any(rule.means(pattern, tool, key) for tool, key in scope.tools.values()):
            message = f"names {pattern!r}, which matches no tool of the catalog"
            yield _finding("dead-pattern", rule, message, _guess(pattern, scope))


def _guess(pattern: str, scope: _Scope) -> str:
    names = {name for tool, key in scope.tools.values() for name in (tool.name, key)}
    return "" if is_glob(pattern) else closest(pattern, names)


def _arguments(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    """Constraints on arguments that nothing has: an allow rule never matches, and a deny rule stops nothing."""
    tools = scope.of(rule)
    for path in [*(constraint.path for constraint in (*rule.when, *rule.unless)), *(rule.only or ())]:
        if any(declares(tool.input_schema, path) for tool in tools):
            continue
        if any(places_of(tool.input_schema).concern(path, wide=rule.wide) for tool in tools):
            continue
        known = {name for tool in tools for name in (tool.input_schema or {}).get("properties", {})}
        message = f"names the argument {path!r}, which none of its tools has"
        yield _finding("unknown-argument", rule, message, closest(path, known))


def _conditions(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    """Give what `where` and `limit` say that can never come to anything."""
    tools = scope.of(rule)
    if rule.where is not None:
        known = {name: tool for name, (tool, _) in scope.tools.items()}
        for kind, message, remedy in problems(rule.where, tools, known):
            yield _finding(cast("Kind", kind), rule, message, remedy)
    if (limit := rule.limit) is None:
        return
    names = {tool.name: limit.argument(tool.name).partition("/")[0] for tool in tools}
    summed = ", ".join(sorted({name for name in names.values() if name}))
    if summed and not any(declares(tool.input_schema, names[tool.name]) for tool in tools if names[tool.name]):
        message = f"names the argument {summed!r}, which none of its tools has"
        yield _finding("unknown-argument", rule, message)


def _unbounded(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    """Allow rules for L2 without a constraint, or with none that bounds a command."""
    names = [tool.name for tool in scope.of(rule) if effective_level(tool) is Level.L2]
    if rule.effect != "allow" or not names:
        return
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004 - as shown
    operators = {operator.name for constraint in rule.when for operator in constraint.operators}
    if not operators and rule.where is None and rule.limit is None:
        message = f"allows {shown} (L2) with any arguments"
        yield _finding("unbounded", rule, message, "Name the arguments it is meant for with `when`.")
    elif operators and operators <= {"glob", "optional", "prefix", "present"}:
        message = (
            f"allows {shown} (L2) by glob or prefix alone; a harmless beginning can be followed by another command"
        )
        yield _finding("loose", rule, message, "Use equals or in if the argument is a command.")


def _open(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    """Allow rules that limit some arguments and forget another, such as `cc` beside `to`."""
    if rule.effect != "allow" or not rule.when or rule.only is not None:
        return
    looked_at = {constraint.path.partition(".")[0] for constraint in rule.when}
    if rule.where is not None:
        looked_at |= {str(path.parts[0]) for path in paths_of(rule.where) if path.root == "args" and path.parts}
    for tool in scope.of(rule):
        known = (tool.input_schema or {}).get("properties", {})
        names = sorted(name for name in known if name not in looked_at and _reaches(name, known[name]))
        if names and effective_level(tool) is not Level.L0:
            message = f"limits {', '.join(sorted(looked_at))}, but {names[0]!r} of {tool.name} may be anything"
            yield _finding("open-arguments", rule, message, "Limit it too, or list the allowed arguments with `only`.")
            return


def _reaches(name: str, schema: object) -> bool:
    """Return whether an argument decides what a call reaches, as far as its schema tells."""
    known = schema if isinstance(schema, Mapping) else {}
    if known.get("type") == "boolean":
        return False  # such as `create_folders`: it switches something on
    role, shape = known.get(KEYWORD), FORMATS.get(str(known.get("format")))
    return (role or shape or role_of_name(name) or "content") != "content"


def _redundant(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    defaults = [scope.about[other.id] for other in scope.rules if other.default]
    if any(scope.about[rule.id] & about for about in defaults):
        return
    if rule.effect == "allow" and all(default_for(tool).effect == "allow" for tool in scope.of(rule)):
        yield _finding("redundant", rule, "allows only what runs without it", "Leave it out.")


def _taint(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    """Rules whose `taint` gives everything away, or is never looked at."""
    tools = [tool for tool in scope.of(rule) if effective_level(tool) is not Level.L0]
    if rule.taint is not None and not tools:
        yield _finding("idle-taint", rule, "has taint, but all of its tools only read", "Leave taint out.")
    elif rule.taint == "allow" and not rule.bounded:
        message = f"lets untrusted text choose the arguments of {tools[0].name}"
        yield _finding("open-taint", rule, message, "Name the arguments it is meant for with `when`.")
    if not rule.looks_for_untrusted:
        return
    if far := next((pattern for pattern in rule.callers if pattern.startswith(_FAR)), ""):
        message = f"has taint, and of {far} it sees only text that Remit gave in the same session"
        remedy = 'With taint = "strict" a value that stands nowhere is asked about.'
        yield _finding("partial-taint", rule, message, remedy)
    if blind := [tool.name for tool in tools if _is_blind(tool)]:
        remedy = 'Give an argument a role with `x-remit-role`, or use taint = "strict".'
        yield _finding("idle-taint", rule, f"has taint, but no argument of {blind[0]} has a role", remedy)


def _is_blind(tool: ToolMeta) -> bool:
    """Return whether a tool has arguments, and none of them decides what a call reaches, as far as its schema tells."""
    known = (tool.input_schema or {}).get("properties", {})
    return bool(known) and not any(_reaches(name, known[name]) for name in known)


def _overruled(rule: Rule, scope: _Scope) -> Iterator[LintFinding]:
    """Yield a finding if other rules decide wherever this one matches."""
    covering = [other for other in scope.rules if other is not rule and _beats(other, rule) and _covers(other, rule)]
    if rule.taint is not None:  # which counts wherever the rule matches, the approver, unless the call is denied
        covering = [other for other in covering if other.effect == "deny"]
    if scope.tools:
        covering = [other for other in covering if scope.about[rule.id] & scope.about[other.id]]
        decided = set[str]().union(*(scope.about[other.id] for other in covering))
        if not scope.about[rule.id] <= decided:
            return
    else:
        covering = [other for other in covering if _same_tools(other, rule)]
    if not covering:
        return
    twin = next(
        (earlier for earlier in covering if earlier.effect != rule.effect and _same_conditions(earlier, rule)), None
    )
    if twin is not None:
        message = f"has effect {rule.effect}, but {twin.id} has effect {twin.effect} under the same conditions"
        yield _finding("contradiction", rule, message, f"{twin.id} wins; remove one of them.")
    else:
        ids = ", ".join(other.id for other in covering)
        yield _finding(
            "shadowed",
            rule,
            f"never decides: wherever it matches, {ids} decides",
            "Remove it, or narrow the other rule.",
        )


def _more(rule: Rule) -> tuple[object, ...]:
    """Return what a rule asks for beside caller and arguments."""
    return rule.unless, rule.during, rule.outside, rule.limit, rule.where


def _beats(rule: Rule, other: Rule) -> bool:
    """Return whether `rule` decides a call that both match."""
    if rule.default != other.default:
        return other.default
    if rule.effect != other.effect:
        return _STRICTNESS[rule.effect] > _STRICTNESS[other.effect]
    if rule.number > other.number:
        return False
    return rule.effect != "ask" or _demands(rule, other)


def _demands(rule: Rule, other: Rule) -> bool:
    """Return whether an ask rule demands all that another does."""
    people = not other.approvers or (bool(rule.approvers) and set(rule.approvers) <= set(other.approvers))
    time = other.expires_s is None or (rule.expires_s is not None and rule.expires_s <= other.expires_s)
    return rule.approvals >= other.approvals and people and time


def _covers(rule: Rule, other: Rule) -> bool:
    """Return whether `rule` matches every caller and all arguments that `other` matches."""
    if rule.callers and not (other.callers and set(other.callers) <= set(rule.callers)):
        return False
    if rule.limit is not None and (rule.effect == "allow") != (other.effect == "allow"):
        return False  # beyond the limit within which the other matches
    operators = {constraint.path: set(map(str, constraint.operators)) for constraint in other.when}
    if any(mine not in {None, (), theirs} for mine, theirs in zip(_more(rule), _more(other), strict=True)):
        return False
    if rule.only is not None and (other.only is None or not set(other.only) <= set(rule.only)):
        return False
    return all(set(map(str, constraint.operators)) <= operators.get(constraint.path, set()) for constraint in rule.when)


def _same_tools(rule: Rule, other: Rule) -> bool:
    return (rule.tools, rule.providers, rule.levels) == (other.tools, other.providers, other.levels)


def _same_conditions(rule: Rule, other: Rule) -> bool:
    same = rule.when == other.when and rule.only == other.only and _more(rule) == _more(other)
    return _same_tools(rule, other) and set(rule.callers) == set(other.callers) and same


def _approvers(scope: _Scope) -> Iterator[LintFinding]:
    """Pairs of ask rules that can meet and then leave too few people."""
    asking = [rule for rule in scope.rules if rule.effect == "ask" and rule.approvers]
    for first, other in combinations(asking, 2):
        shared = scope.about[first.id] & scope.about[other.id]
        people = set(first.approvers) & set(other.approvers)
        if shared and most_of(people) < max(first.approvals, other.approvals):
            message = f"and {first.id} both match {min(shared)}, and together leave {len(people)} to approve"
            yield _finding("nobody-approves", other, message, "Such a call is denied: let the rules share approvers.")
