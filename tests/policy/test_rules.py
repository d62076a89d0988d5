import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import PolicyError
from remit.policy.decision import Decision, Query
from remit.policy.levels import default_for
from remit.policy.rules import ERROR_ID, Policy
from remit.tools.meta import Level
from tests.policy.samples import ALICE, COMMENT, EXEC, READ, TOOLS, WRITE, caller, decide, job, query, tool

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
PEOPLE = ("alice", "bob", "carol")

WHENS = st.dictionaries(
    st.sampled_from(["path", "repo", "command"]),
    st.sampled_from(
        [{"glob": "docs/**"}, {"in": ["a", "docs/a"]}, {"present": True}, {"absent": True}, {"prefix": "d"}]
    ),
    min_size=1,
    max_size=2,
)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "tools": st.sampled_from([["fs.*"], ["github"], ["fs.write", "sandbox.exec"], ["git*"], ["nothing.at_all"]]),
    "levels": st.sampled_from([["L0"], ["L1"], ["L1", "L2"]]),
    "providers": st.sampled_from([["builtin"], ["mcp_*"]]),
    "callers": st.sampled_from([["alice"], ["job:*"], ["job:triage/bob", "http:*"]]),
    "when": WHENS,
}
ASKS: dict[str, st.SearchStrategy[Any]] = {
    "approvals": st.integers(1, 2),
    "approvers": st.sampled_from([["alice", "bob"], ["bob", "carol"], ["alice", "bob", "carol"]]),
    "expires": st.integers(1, 3),
}
PLAIN_RULES = st.fixed_dictionaries({"effect": st.sampled_from(["allow", "deny"])}, optional=PARTS)
RULES = PLAIN_RULES | st.fixed_dictionaries({"effect": st.just("ask")}, optional=PARTS | ASKS)
POLICIES = st.lists(RULES, max_size=6)
CALLERS = st.sampled_from([ALICE, job("triage", "bob"), job("other"), caller("http", "carol")])
ARGS = st.dictionaries(
    st.sampled_from(["path", "repo", "command"]),
    st.sampled_from(["docs/a", "docs/../x", "a", "", None, 1, ["docs/a", "b"]]),
    max_size=3,
)
QUERIES = st.builds(lambda meta, who, args: query(meta, who, **args), st.sampled_from(TOOLS), CALLERS, ARGS)


def linear(policy: Policy, asked: Query) -> Decision | tuple[str, set[str]]:
    """The decision by going through the rules one by one: of several, any id of the deciding effect will do."""
    matching = [rule for rule in policy.rules if rule.matches(asked)]
    if not matching:
        return default_for(asked.tool)
    effect = max((rule.effect for rule in matching), key=STRICTNESS.__getitem__)
    deciding = [rule for rule in matching if rule.effect == effect]
    ids = {rule.id for rule in deciding}
    approvals = max(rule.approvals for rule in deciding)
    people = set(PEOPLE)
    for rule in deciding:
        people &= set(rule.approvers or PEOPLE)
    if approvals > 1:
        people -= {asked.caller.principal}
    named = any(rule.approvers for rule in deciding)
    return ("deny" if named and len(people) < approvals else effect), ids


@given(POLICIES, QUERIES)
def test_the_index_decides_as_going_through_all_rules_does(raw: list[dict[str, Any]], asked: Query) -> None:
    policy = Policy.parse(raw)
    expected, decision = linear(policy, asked), policy.decide(asked)
    if isinstance(expected, Decision):
        assert decision == expected
    else:
        assert decision.effect == expected[0]
        assert decision.rule_id in expected[1]


@given(POLICIES, st.lists(QUERIES, max_size=5), QUERIES)
def test_a_decision_does_not_depend_on_those_before_it(
    raw: list[dict[str, Any]], before: list[Query], asked: Query
) -> None:
    used = Policy.parse(raw)
    for one in before:
        used.decide(one)
    assert used.decide(asked) == Policy.parse(raw).decide(asked)


@pytest.mark.slow
@given(POLICIES, PLAIN_RULES.map(lambda raw: raw | {"effect": "deny"}), QUERIES)
def test_adding_a_deny_rule_never_makes_a_decision_weaker(
    raw: list[dict[str, Any]], more: dict[str, Any], asked: Query
) -> None:
    before, after = Policy.parse(raw).decide(asked), Policy.parse([*raw, more]).decide(asked)
    assert STRICTNESS[after.effect] >= STRICTNESS[before.effect]


@given(POLICIES, RULES.map(lambda raw: raw | {"effect": "ask"}), QUERIES)
def test_adding_an_ask_rule_makes_no_decision_weaker_nor_a_question_easier(
    raw: list[dict[str, Any]], more: dict[str, Any], asked: Query
) -> None:
    before, after = Policy.parse(raw).decide(asked), Policy.parse([*raw, more]).decide(asked)
    assert STRICTNESS[after.effect] >= STRICTNESS[before.effect]
    if before.effect == after.effect == "ask":
        assert after.approvals >= before.approvals
        assert not before.approvers or set(after.approvers) <= set(before.approvers)
        assert before.expires_s is None or (after.expires_s is not None and after.expires_s <= before.expires_s)


@given(st.lists(RULES, max_size=5), QUERIES, st.randoms(use_true_random=False))
def test_the_order_of_rules_never_matters(raw: list[dict[str, Any]], asked: Query, random: Any) -> None:
    mixed = [one | {"id": f"r{number}"} for number, one in enumerate(raw)]
    first = Policy.parse(mixed).decide(asked)
    random.shuffle(mixed)
    second = Policy.parse(mixed).decide(asked)
    assert (first.effect, first.approvals, first.approvers, first.expires_s) == (
        second.effect,
        second.approvals,
        second.approvers,
        second.expires_s,
    )


def backwards(value: Any) -> Any:
    """The same table with its keys in the other order."""
    if isinstance(value, dict):
        return {key: backwards(below) for key, below in reversed(value.items())}
    return value


@given(POLICIES)
def test_the_hash_does_not_depend_on_the_order_of_keys(raw: list[dict[str, Any]]) -> None:
    assert Policy.parse(raw).hash == Policy.parse([backwards(one) for one in raw]).hash


@given(POLICIES, RULES)
def test_one_rule_more_is_another_hash(raw: list[dict[str, Any]], more: dict[str, Any]) -> None:
    assert Policy.parse(raw).hash != Policy.parse([*raw, more]).hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"tools": "fs.*"}, {"tools": ["fs.*"]}),
        ({"tools": ["a.b", "c.d"]}, {"tools": ["c.d", "a.b"]}),
        ({"effect": "ask", "expires": "2h"}, {"effect": "ask", "expires": 7200}),
        ({}, {"id": "rule-1"}),
    ],
)
def test_two_ways_to_write_a_rule_are_one_hash(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert Policy.parse([{"effect": "deny"} | one]).hash == Policy.parse([{"effect": "deny"} | other]).hash


@pytest.mark.parametrize(
    "change",
    [
        {"id": "x"},
        {"effect": "deny"},
        {"tools": ["fs.*"]},
        {"levels": ["L1"]},
        {"providers": ["builtin"]},
        {"callers": ["alice"]},
        {"when": {"path": {"glob": "docs/**"}}},
        {"approvals": 2},
        {"approvers": ["bob"]},
        {"expires": "2h"},
        {"reason": "because"},
    ],
)
def test_every_key_of_a_rule_is_in_the_hash(change: dict[str, Any]) -> None:
    assert Policy.parse([{"effect": "ask"}]).hash != Policy.parse([{"effect": "ask"} | change]).hash


def test_the_hash_of_no_rules_is_that_of_the_defaults() -> None:
    assert Policy().hash == Policy.parse([]).hash
    assert Policy().hash.startswith("sha256:")


@pytest.mark.parametrize("order", list(itertools.permutations(["deny", "ask", "allow"])))
def test_deny_is_stronger_than_ask_and_ask_than_allow(order: tuple[str, ...]) -> None:
    rules = [{"effect": effect, "id": effect} for effect in order]
    assert decide(query(), *rules).rule_id == "deny"
    assert decide(query(), *[one for one in rules if one["id"] != "deny"]).rule_id == "ask"
    assert decide(query(), {"effect": "allow", "id": "allow"}).rule_id == "allow"


def test_without_rules_the_level_decides() -> None:
    assert decide(query(READ)).rule_id == "default:L0"
    assert decide(query(WRITE)).rule_id == "default:L1"
    assert decide(query(EXEC)).rule_id == "default:L2"


def test_a_rule_can_tighten_what_would_run_and_loosen_what_would_ask() -> None:
    assert decide(query(READ), {"effect": "ask"}).effect == "ask"
    assert decide(query(EXEC), {"effect": "allow"}).effect == "allow"


def test_no_rule_allows_an_unknown_tool() -> None:
    unknown = Query(tool=None, key="no.such_tool", args={}, caller=ALICE)
    assert decide(unknown, {"effect": "allow"}).rule_id == "default:unknown-tool"


def test_a_decision_says_the_rule_and_its_reason() -> None:
    decision = decide(query(), {"effect": "deny", "id": "frozen", "reason": "The release is frozen."})
    assert decision == Decision(effect="deny", rule_id="frozen", reason="The release is frozen.")


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_a_rule_without_a_reason_gives_one_all_the_same(effect: str) -> None:
    assert decide(query(), {"effect": effect}).reason


def test_of_several_rules_of_one_effect_the_first_gives_the_id() -> None:
    assert decide(query(), {"effect": "deny", "tools": ["fs.*"]}, {"effect": "deny"}).rule_id == "rule-1"


def test_a_question_says_how_many_and_who_and_how_long() -> None:
    asked = decide(query(), {"effect": "ask", "approvals": 2, "approvers": ["bob", "carol"], "expires": "2h"})
    assert (asked.effect, asked.approvals, asked.approvers, asked.expires_s) == ("ask", 2, ("bob", "carol"), 7200)


def test_several_questions_become_the_strictest() -> None:
    asked = decide(
        query(),
        {"effect": "ask", "id": "long", "expires": "2h", "approvers": ["bob", "carol", "dan"]},
        {"effect": "ask", "id": "two", "approvals": 2},
        {"effect": "ask", "id": "short", "expires": "1h", "approvers": ["carol", "dan", "eve"]},
    )
    assert (asked.rule_id, asked.approvals, asked.approvers, asked.expires_s) == ("two", 2, ("carol", "dan"), 3600)


def test_questions_that_leave_too_few_people_are_a_denial() -> None:
    refusal = decide(
        query(), {"effect": "ask", "approvers": ["bob"]}, {"effect": "ask", "approvers": ["carol"]}, {"effect": "allow"}
    )
    assert refusal.effect == "deny"
    assert refusal.reason == "Too few people may approve: 1 must, and rule-1, rule-2 leave 0."


def test_who_asks_is_not_counted_where_two_must_approve() -> None:
    rule = {"effect": "ask", "approvals": 2, "approvers": ["alice", "bob"]}
    assert decide(query(), rule).effect == "deny"
    assert decide(query(WRITE, caller("http", "carol")), rule).effect == "ask"
    assert decide(query(), rule | {"approvals": 1}).effect == "ask"


class Hostile(dict[str, Any]):
    """Arguments that cannot even be looked at."""

    def get(self, *_args: Any) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_whatever_goes_wrong_while_deciding_is_a_denial(effect: str) -> None:
    policy = Policy.parse([{"effect": effect, "when": {"path": {"glob": "docs/**"}}}])
    asked = Query(tool=WRITE, key="fs_write", args=Hostile(), caller=ALICE)
    decision = policy.decide(asked)
    assert (decision.effect, decision.rule_id) == ("deny", ERROR_ID)
    assert "RuntimeError" in decision.reason


def test_the_same_name_with_another_level_is_decided_anew() -> None:
    policy = Policy.parse([{"effect": "deny", "levels": ["L2"]}])
    assert policy.decide(query(tool("x.y", Level.L1))).effect == "ask"
    assert policy.decide(query(tool("x.y", Level.L2))).effect == "deny"
    assert policy.decide(query(tool("x.y", Level.L1))).effect == "ask"


def test_a_tool_under_another_key_is_decided_anew() -> None:
    policy = Policy.parse([{"effect": "deny", "tools": ["github"]}])
    asked = query(COMMENT)
    assert policy.decide(asked).effect == "deny"
    assert policy.decide(Query(tool=COMMENT, key="other", args={}, caller=ALICE)).effect == "ask"


def test_a_policy_with_a_rule_that_cannot_be_understood_is_refused() -> None:
    with pytest.raises(PolicyError, match="rule 2"):
        Policy.parse([{"effect": "deny"}, {"effect": "perhaps"}])


@given(st.lists(RULES, max_size=4), CALLERS)
def test_what_is_forbidden_is_denied_whatever_the_arguments(rules: list[dict[str, Any]], who: Any) -> None:
    policy = Policy.parse(rules)
    for meta in TOOLS:
        asked = query(meta, who)
        if policy.forbids(meta, asked.key, who):
            for args in ({}, {"path": "docs/a"}, {"command": "d", "repo": ["x"]}):
                assert policy.decide(query(meta, who, **args)).effect == "deny"


@pytest.mark.parametrize(
    ("rule", "forbidden"),
    [
        ({"tools": ["fs.write"]}, True),
        ({}, True),
        ({"callers": ["alice"]}, True),
        ({"callers": ["bob"]}, False),
        ({"tools": ["fs.read"]}, False),
        ({"when": {"path": {"present": True}}}, False),
        ({"levels": ["L1"]}, True),
    ],
)
def test_a_tool_is_forbidden_where_a_rule_denies_every_call_of_it(rule: dict[str, Any], forbidden: bool) -> None:
    policy = Policy.parse([{"effect": "deny", **rule}, {"effect": "allow", "tools": ["fs.*"]}])
    assert policy.forbids(WRITE, query(WRITE, ALICE).key, ALICE) is forbidden


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], "asks"),
        ([{"effect": "allow", "tools": ["fs.write"]}], "runs"),
        ([{"effect": "deny", "tools": ["fs.write"]}], "denied"),
        ([{"effect": "allow", "tools": ["fs.write"], "when": {"path": {"glob": "docs/**"}}}], "depends"),
        ([{"effect": "deny", "tools": ["fs.write"], "when": {"path": {"glob": "docs/**"}}}], "depends"),
        ([{"effect": "allow", "tools": ["fs.write"], "callers": ["bob"]}], "asks"),
        (
            [
                {"effect": "ask", "tools": ["fs.write"]},
                {"effect": "allow", "tools": ["fs.write"], "when": {"path": {"glob": "docs/**"}}},
            ],
            "asks",
        ),
    ],
)
def test_the_outlook_says_what_becomes_of_a_tools_calls(rules: list[Any], expected: str) -> None:
    assert Policy.parse(rules).outlook(WRITE, "fs_write", caller("session", "alice")) == expected


SAID = {"runs": "allow", "asks": "ask", "denied": "deny"}
WHERE = {"where": st.sampled_from(["args.path == 'docs/a'", "input.x", "len(args) > 1"])}
MORE = WHERE | {"default": st.booleans()}
CONDITIONED = st.fixed_dictionaries({"effect": st.just("allow")}, optional=WHERE)
CONDITIONED |= st.fixed_dictionaries({"effect": st.sampled_from(["ask", "deny"])}, optional=PARTS | MORE)


@given(st.lists(RULES | CONDITIONED, max_size=6), QUERIES)
def test_what_the_outlook_says_is_decided_of_every_call(raw: list[dict[str, Any]], asked: Query) -> None:
    policy = Policy.parse(raw)
    assert asked.tool is not None
    said = policy.outlook(asked.tool, asked.key, asked.caller)
    if said == "runs":  # a replay takes it for the decision
        assert policy.decide(asked).effect == "allow"
    elif said != "depends":
        assert STRICTNESS[policy.decide(asked).effect] >= STRICTNESS[SAID[said]]
