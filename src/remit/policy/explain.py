"""Why a call is allowed, asked about or denied: every rule in its order, whether it matched and why not.

It goes through the rules one by one, without the index, and reports what `Policy.decide` says.

Each condition of a rule in words: whether it holds, does not, or is unknown, and what it saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from remit.codes import Code
from remit.errors import SchemaError
from remit.origins.arguments import authority_of
from remit.policy.approval import Remembered
from remit.policy.checks import Verdict, every
from remit.policy.condition import caller_matcher
from remit.policy.constraint import Constraint, find
from remit.policy.decision import UNKNOWN, Decision, Effect, Query
from remit.policy.expression import Node, Path, compiled, parts_of, paths_of, verdict
from remit.policy.levels import default_for, effective_level
from remit.policy.places import HOST, places_of
from remit.policy.rule import Rule
from remit.policy.rules import Policy
from remit.policy.table import closest, describe
from remit.tools.meta import Level, ToolMeta
from remit.tools.schema import compile_schema

MEETS = {True: "holds", False: "does not hold", None: "unknown"}


def written(rule: Rule) -> tuple[str, ...]:
    """Everything that a rule asks for beside tool and caller, as a person reads it."""
    parts = [f"when {condition}" for condition in rule.when]
    parts += [f"only {', '.join(rule.only) or 'no arguments'}"] if rule.only is not None else []
    parts += [f"unless {'; '.join(map(str, rule.unless))}"] if rule.unless else []
    named = (("during", rule.during), ("outside", rule.outside), ("limit", rule.limit), ("where", rule.where))
    parts += [f"{name} {part}" for name, part in named if part is not None]
    return (*parts, "no other rule matches") if rule.default else tuple(parts)


def explained(rule: Rule, query: Query) -> Iterator[tuple[Verdict, str]]:
    """Each condition besides caller, `when` and `only`: whether it lets the rule match, and what was found."""
    if rule.unless:
        schema = query.tool.input_schema if query.tool is not None else None
        verdicts = [condition.judge(wide=not rule.wide)(query.args, schema) for condition in rule.unless]
        excepted = every(verdicts)
        words = "; ".join(
            worded("unless", condition, query, truth) for condition, truth in zip(rule.unless, verdicts, strict=True)
        )
        yield None if excepted is None else not excepted, words
    for name, window, inside in (("during", rule.during, True), ("outside", rule.outside, False)):
        if window is not None:
            within = window.holds(query.now)
            meets = within if within is None or inside else not within
            yield meets, f"{name} {window}: {MEETS[meets]}"
    if rule.limit is not None:
        yield _limit(rule, query)
    for part in parts_of(rule.where) if rule.where is not None else ():
        truth = verdict(compiled(part), query)
        yield truth, f"where {part}: {MEETS[truth]}{_values(part, query)}"


def used_up(rules: Iterable[Rule], query: Query) -> str:
    """Name the rules that would allow a call if their limits left room; empty: there are none."""
    spent = [
        rule
        for rule in rules
        if rule.effect == "allow" and rule.limit is not None and rule.limit.within(rule.id, query) is False
        if msgspec.structs.replace(rule, limit=None).matches(query)
    ]
    return " ".join(
        f"Rule {rule.id} would allow it, but its limit is reached: {rule.limit}; {_spent(rule, query)}."
        for rule in spent
    )


def beyond(rules: Iterable[Rule], decision: Decision, query: Query) -> str:
    """Return how full the limit is beyond which a rule decided, and those of rules that would allow; empty: none."""
    decider = next((rule for rule in rules if rule.id == decision.rule_id and rule.limit is not None), None)
    if decider is None or decider.limit is None:
        return used_up(rules, query)
    key = decider.limit.key(decider.id, query)
    others = used_up((rule for rule in rules if rule.limit is None or rule.limit.key(rule.id, query) != key), query)
    return f"Its limit is reached: {decider.limit}; {_spent(decider, query)}. {others}".rstrip()


def _spent(rule: Rule, query: Query) -> str:
    taken = query.facts.taken if query.facts is not None else None
    if rule.limit is None or taken is None:
        return ""
    key = rule.limit.key(rule.id, query)
    return rule.limit.spent(taken[key]) if key in taken else rule.limit.spent()


def worded(key: str, constraint: Constraint, query: Query, met: Verdict) -> str:
    """Return whether a constraint holds, in words."""
    values, missing = find(query.args, constraint.path)
    schema = query.tool.input_schema if query.tool is not None else None
    if constraint.path == HOST and (places := places_of(schema)).urls:
        values, missing = places.hosts(query.args)
    if missing:
        state = "is missing" if not values else "is missing in places"
    else:
        state = "is " + ", ".join(describe(value) for value in values[:3])
    return f"{key} {constraint}: {MEETS[met]}, {constraint.path} {state}"


def _limit(rule: Rule, query: Query) -> tuple[Verdict, str]:
    limit = rule.limit
    if limit is None:
        return True, ""
    within = limit.within(rule.id, query)
    taken = query.facts.taken if query.facts is not None else None
    calls, total = (taken or {}).get(limit.key(rule.id, query), (0, 0))
    where = "unknown" if within is None else "is not reached" if within else "is reached"
    argument = limit.argument(query.tool.name if query.tool else "")
    spent = f", {calls} calls" + (f" and {total} of {argument}" if argument else "") + " so far" if taken else ""
    return None if within is None else within is not rule.wide, f"limit {limit}: {where}{spent}"


def _values(part: Node, query: Query) -> str:
    """Return what a condition looked at."""
    values = [(path, compiled(path)(query)) for path in dict.fromkeys(paths_of(part))]
    return "".join(f", {path} is {_shown(path, value)}" for path, value in values[:4])


def _shown(path: Path, value: Any) -> str:
    if value is not UNKNOWN:
        return describe(value)
    return "unknown" if path.root or path.parts else "not there: this job has no result of it"


Part = Literal["decided", "joined", "overruled", "no match"]


class Considered(msgspec.Struct, frozen=True, kw_only=True):
    """One rule or remembered approval, and its part in the decision."""

    rule_id: str
    effect: Effect
    part: Part
    """`joined`: it matched, but another of its effect gave the id; `overruled`: it matched, but a stricter one did."""
    why: str
    """Why it did not match; where it did, what was unknown and therefore counted. May be empty."""


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    """An argument that decides what the call reaches."""

    path: str
    role: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and everything that led to it, for a face to render."""

    decision: Decision
    default: Decision
    """The decision if there were no rules."""
    level: str
    """The level the tool is treated as; empty where it is unknown."""
    considered: tuple[Considered, ...]
    """The rules, in the order of the file."""
    remembered: tuple[Considered, ...]
    """The remembered approvals, in the order they were given in."""
    authority: tuple[Authority, ...] = ()
    """The arguments that decide what the call reaches; none of a tool that only reads."""
    tainted: Decision | None = None
    """The decision if an agent had them from untrusted text."""
    problems: tuple[str, ...] = ()
    """Why no such call can be made: the tool is unknown, or could not take these arguments. Some may be left out."""


def explain(policy: Policy, query: Query, remembered: Sequence[Remembered] = ()) -> Explanation:
    """The decision on a call, with the part that every rule had in it."""
    decision = policy.decide(query)
    # Ask rules that leave no one to ask deny together, so the deciding effect is the rule's own.
    decider = next((rule for rule in policy.rules if rule.id == decision.rule_id), None)
    authority = _authority(policy, query)
    paths = {argument.path for argument in authority}
    return Explanation(
        authority=authority,
        tainted=policy.tainted(query, decision, paths) if authority else None,
        decision=policy.decide(query, remembered),
        default=default_for(query.tool),
        level=effective_level(query.tool).name if query.tool else "",
        considered=tuple(_considered(rule, query, decider) for rule in policy.rules),
        remembered=_remembered(remembered, query, decision),
        problems=misfits(query.tool, query.args) if query.tool else (),
    )


def _authority(policy: Policy, query: Query) -> tuple[Authority, ...]:
    if query.tool is None or effective_level(query.tool) is Level.L0:
        return ()
    argument = {
        (authority.path, authority.role): None
        for authority in authority_of(query.tool, query.args, every=policy.is_strict(query))
    }
    return tuple(Authority(path=path, role=role) for path, role in argument)


def _considered(rule: Rule, query: Query, decider: Rule | None) -> Considered:
    try:
        matched, reason = _match(rule, query)
    except Exception as error:  # noqa: BLE001 - what made the decision fail is what there is to explain
        matched, reason = False, f"cannot be evaluated: {type(error).__name__}: {error}"
    part: Part = "no match"
    if matched and decider is not None:
        alike = (rule.effect, rule.default) == (decider.effect, decider.default)
        part = "decided" if rule is decider else "joined" if alike else "overruled"
    elif matched:
        part = "overruled"
    return Considered(rule_id=rule.id, effect=rule.effect, part=part, why=reason)


def _match(rule: Rule, query: Query) -> tuple[bool, str]:
    """Return whether a rule matches, and why not, or in spite of which doubts."""
    if query.tool is None:
        return False, "the tool is unknown"
    reason = rule.unconcerned(query.tool, query.key) or _caller(rule, query)
    if reason:
        return False, reason
    if rule.only is not None and (others := sorted(set(query.args) - set(rule.only))):
        return False, f"only: the call also has {', '.join(others)}"
    verdictses: list[tuple[Verdict, str]] = []
    for constraint in rule.when:
        verdict = constraint.judge(wide=rule.wide)(query.args, query.tool.input_schema)
        verdictses.append((verdict, worded("when", constraint, query, verdict)))
    verdictses += explained(rule, query)
    for verdict, words in verdictses:
        if verdict is False or (verdict is None and not rule.wide):
            return False, words
    doubts = [words for verdict, words in verdictses if verdict is None]
    return True, "; ".join(doubts or [words for _, words in verdictses[len(rule.when) :]])


def _caller(rule: Rule, query: Query) -> str:
    if caller_matcher(rule.callers)(query.caller):
        return ""
    caller = query.caller
    shown = (
        f"{caller.kind}:{caller.recipe}/{caller.principal}"
        if caller.kind in {"job", "plan"}
        else f"{caller.kind}:{caller.principal}"
    )
    return f"callers: {shown} is not among {', '.join(rule.callers)}"


def _remembered(remembered: Sequence[Remembered], query: Query, decision: Decision) -> tuple[Considered, ...]:
    considered = []
    decided = False
    for rule in remembered:
        reason = rule.unanswered(query, decision)
        part: Part = "no match" if reason else "joined" if decided else "decided"
        decided = decided or not reason
        considered.append(Considered(rule_id=rule.decision.rule_id, effect="allow", part=part, why=reason))
    return tuple(considered)


def misfits(tool: ToolMeta, args: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments that do not exist or have the wrong type, each in words; those that are left out are no misfits."""
    try:
        schema = compile_schema(tool.input_schema, closed=not tool.open)
    except SchemaError:  # such a tool is withheld, whatever it is given
        return ()
    declared = schema.schema.get("properties")
    names = tuple(declared) if isinstance(declared, Mapping) else ()
    texts = []
    for problem in schema.problems(dict(args)):
        if problem.code is Code.missing:
            continue
        path = problem.path.removeprefix("/")
        hint = closest(path, names) if problem.code is Code.unknown_field else ""
        texts.append(f"{path or 'args'} {problem.message}{'. ' if hint else ''}{hint}")
    return tuple(texts)
