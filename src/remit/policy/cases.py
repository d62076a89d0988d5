"""Unit tests of a policy: `[[policy.tests]]` in the file that holds the rules, run by `remit policy lint`.

Facts that a test or an explanation takes as given: the job's input, earlier results, what was taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from remit.origins.arguments import authority_of
from remit.policy.decision import CALLER_KINDS, EFFECTS, UNKNOWN, Caller, CallerKind, Decision, Effect, Facts, Query
from remit.policy.explain import misfits
from remit.policy.levels import UNKNOWN_TOOL, effective_level
from remit.policy.rules import Policy
from remit.policy.table import Table, closest, describe
from remit.tools.meta import Level, ToolMeta
from remit.tools.names import key_of

SOMEONE: Final = "someone"
"""The caller of a test that names none."""
_GIVEN_KEYS: Final = ("calls", "sum")
"""Every key of what was taken of a limit."""


class CaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts as they are written."""

    input: Any = UNKNOWN
    results: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The last result of a tool, by its full name."""
    taken: Mapping[str, tuple[int, Decimal]] = msgspec.field(default_factory=dict)
    """Calls and their sum, by the id of the rule whose limit it is."""

    def to(self, policy: Policy, query: Query) -> Query:
        """The query with these facts."""
        if query.tool is None:
            return query
        limits = policy.needs(query.tool, query.key).limits
        spent = {
            limit.limit.key(limit.rule.id, query): self.taken[limit.rule.id]
            for limit in limits
            if limit.rule.id in self.taken
        }
        return replace(query, facts=Facts(input=self.input, seen=self.results, taken=spent))


def given_of(table: Table) -> CaseFacts:
    """Return what stands under `input`, `seen` and `taken`. Raises PolicyError."""
    results, taken = _tables(table, "seen"), _tables(table, "taken")
    spent: dict[str, tuple[int, Decimal]] = {}
    for rule, raw in taken.items():
        below = Table(raw, f"{table.where}, taken.{rule}", _GIVEN_KEYS)
        calls, total = below.raw("calls") or 0, below.raw("sum") or 0
        if type(calls) is not int or type(total) not in {int, float} or calls < 0 or total < 0:
            raise below.error("calls", "and sum must be numbers from 0")
        spent[rule] = (calls, Decimal(str(total)))
    return CaseFacts(input=table.raw("input") if "input" in table else UNKNOWN, results=results, taken=spent)


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


class TakenTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What earlier calls took of a limit."""

    calls: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Their number."""
    sum: Annotated[float, msgspec.Meta(ge=0)] = 0
    """Their sum."""


class CaseTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[policy.tests]]` table: its keys, and their forms for editors. `parse_case` says what fits."""

    tool: Annotated[str, msgspec.Meta(min_length=1)]
    """The tool's full name."""
    expect: Effect
    """The decision that the policy should come to."""
    rule: str = ""
    """The id of the rule that must decide, such as `writes-in-docs` or `default:L1`; without it, any."""
    args: dict[str, Any] = {}
    """The arguments; those that do not matter can be left out."""
    principal: str = SOMEONE
    """The caller."""
    recipe: str = ""
    """The recipe whose job makes the call."""
    untrusted: str | tuple[str, ...] = ()
    """Arguments to treat as coming from untrusted text."""
    kind: CallerKind | msgspec.UnsetType = msgspec.UNSET
    """The kind of the caller; without it, `job` with a recipe, else `session`."""
    input: Any = None
    """The job's input."""
    seen: dict[str, Any] = {}
    """Earlier results of tools: `{ "orders.get" = { status = "pending" } }`."""
    taken: dict[str, TakenTable] = {}
    """The takings of earlier calls from limits, by rule: `{ refunds = { calls = 2, sum = 90 } }`."""
    at: str = ""
    """The time at which the call is made: `2026-05-01T12:00:00Z`."""


KEYS: Final = tuple(sorted(CaseTable.__struct_fields__))
"""Every key of a test's table."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A call, and what the policy should say to it."""

    number: int
    """Its place in the file, from 1."""
    tool: str
    args: dict[str, Any]
    caller: Caller
    expect: Effect
    rule: str = ""
    """The id that must have decided; empty: any."""
    untrusted: tuple[str, ...] = ()
    """Arguments that are taken as coming from untrusted text."""
    now: int = 0
    """Microseconds since the Unix epoch; 0: no time is known."""
    facts: CaseFacts = CaseFacts()
    """Further facts."""


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one test."""

    __test__: ClassVar[bool] = False  # not a test of Remit's own

    case: Case
    decision: Decision
    problem: str
    """The difference from what is expected; empty where the test passed."""

    @property
    def passed(self) -> bool:
        """Return whether the policy said what was expected."""
        return not self.problem


def run_tests(policy: Policy, tools: Sequence[ToolMeta], tests: Iterable[object]) -> list[TestResult]:
    """The result of every raw `[[policy.tests]]` table, with the tools of a catalog.

    Raises PolicyError for a table that cannot be understood. A test passes no remembered approvals.
    """
    known = {tool.name: tool for tool in tools}
    cases = [parse_case(raw, number) for number, raw in enumerate(tests, 1)]
    return [_run(policy, known, case) for case in cases]


def parse_case(raw: object, number: int) -> Case:
    """A test from its raw table. Raises PolicyError, which names the test's number and the key."""
    table = Table(raw, f"test {number}", KEYS)
    args = {} if table.raw("args") is None else table.raw("args")
    if not isinstance(args, Mapping):
        raise table.error("args", f"must be a table, not {describe(args)}")
    tool = table.text("tool")
    if not tool:
        raise table.error("tool", "is missing", "Write the full name of a tool, such as fs.read.")
    recipe = table.text("recipe")
    kind: CallerKind = table.choice("kind", CALLER_KINDS) if "kind" in table else "job" if recipe else "session"
    caller = Caller(principal=table.text("principal", SOMEONE), kind=kind, recipe=recipe, stream="job/tested")
    expect = table.choice("expect", EFFECTS)
    return Case(
        now=moment_of(table, "at"),
        facts=given_of(table),
        number=number,
        tool=tool,
        args=dict(args),
        caller=caller,
        expect=expect,
        rule=table.text("rule"),
        untrusted=table.texts("untrusted"),
    )


def _run(policy: Policy, known: Mapping[str, ToolMeta], case: Case) -> TestResult:
    tool = known.get(case.tool)
    key = key_of(case.tool) if tool else case.tool
    query = Query(tool=tool, key=key, args=case.args, caller=case.caller, now=case.now)
    query = case.facts.to(policy, query)
    decision = policy.decide(query)
    if tool is not None and case.untrusted:
        decision = policy.tainted(query, decision, case.untrusted)
    strict = policy.is_strict(query)
    return TestResult(case=case, decision=decision, problem=_problem(case, decision, known, strict=strict))


def _problem(case: Case, decision: Decision, known: Mapping[str, ToolMeta], *, strict: bool) -> str:
    tool = known.get(case.tool)
    wrong = _impossible(case, tool, known)
    if wrong:
        return wrong
    outcome = f"{decision.effect} by {decision.rule_id}"
    if decision.effect != case.expect:
        return f"expected {case.expect}, but it is {outcome}: {decision.reason}"
    known_paths = {argument.path for argument in authority_of(tool, case.args, every=strict)} if tool else set()
    idle = sorted(set(case.untrusted) - known_paths)
    if idle:
        return f"{idle[0]!r} in untrusted is no argument of this call that decides what it reaches"
    if tool and case.untrusted and effective_level(tool) is Level.L0:
        return f"{case.tool} only reads: where its arguments come from is not looked at"
    if case.rule and decision.rule_id != case.rule:
        return f"expected rule {case.rule} to decide, but it is {outcome}"
    return ""


def _impossible(case: Case, tool: ToolMeta | None, known: Collection[str]) -> str:
    """Return why no such call can be made; empty if one can, or if the test is about an unknown tool."""
    if tool is not None:
        return "; ".join(misfits(tool, case.args))
    if case.rule == UNKNOWN_TOOL.rule_id:
        return ""
    hint = closest(case.tool, known)
    return f"no tool has this name{'. ' if hint else ''}{hint}"
