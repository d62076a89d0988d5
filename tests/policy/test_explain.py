from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from remit.policy.decision import Facts, Query
from remit.policy.explain import Explanation, explain
from remit.policy.levels import UNKNOWN_TOOL, default_for
from remit.policy.rule import parse_rule
from remit.policy.rules import ERROR_ID, Policy
from tests.policy.samples import ALICE, COMMENT, EXEC, READ, WRITE, job, query
from tests.policy.test_approval import call, remembered
from tests.policy.test_condition import CALLS, CONFIGURED, pay
from tests.policy.test_rules import POLICIES, QUERIES, Hostile


def parts(explanation: Explanation) -> list[str]:
    return [one.part for one in explanation.considered]


def why(asked: Query, effect: str = "allow", **said: Any) -> str:
    (one,) = explain(Policy.parse([{"effect": effect} | said]), asked).considered
    return one.why


@given(POLICIES, QUERIES)
def test_the_explanation_agrees_with_the_decision(raw: list[dict[str, Any]], asked: Query) -> None:
    policy = Policy.parse(raw)
    explanation = explain(policy, asked)
    assert explanation.decision == policy.decide(asked)
    assert explanation.default == default_for(asked.tool)
    assert [one.rule_id for one in explanation.considered] == [rule.id for rule in policy.rules]
    matched = [one.rule_id for one in explanation.considered if one.part != "no match"]
    assert matched == [rule.id for rule in policy.rules if rule.matches(asked)]
    decided = [one.rule_id for one in explanation.considered if one.part == "decided"]
    assert decided == ([explanation.decision.rule_id] if matched else [])
    assert all(one.why for one in explanation.considered if one.part == "no match")


@given(CONFIGURED, CALLS)
def test_nor_do_conditions_and_defaults_change_that(raw: list[dict[str, Any]], asked: Query) -> None:
    policy = Policy.parse(raw)
    explanation = explain(policy, asked)
    assert explanation.decision == policy.decide(asked)
    matched = [one.rule_id for one in explanation.considered if one.part != "no match"]
    assert matched == [rule.id for rule in policy.rules if rule.matches(asked)]
    decided = [one.rule_id for one in explanation.considered if one.part == "decided"]
    assert decided == ([] if explanation.decision.rule_id.startswith("default:") else [explanation.decision.rule_id])


def test_it_says_which_condition_held_failed_or_could_not_be_told() -> None:
    said = {"where": 'args.cents <= 100 and seen("desk.look").status == "pending" and args.to == principal'}
    assert why(pay(Facts(), to="alice", cents=250), **said) == (
        "where args.cents <= 100: does not hold, args.cents is 250"
    )
    assert why(pay(Facts(), to="alice", cents=1), "deny", **said) == (
        'where seen("desk.look").status == "pending": unknown, seen("desk.look").status is unknown'
    )
    facts = Facts(seen={"desk.look": {"status": "pending"}})
    assert why(pay(facts, to="alice", cents=1), **said) == (
        "where args.cents <= 100: holds, args.cents is 1; "
        'where seen("desk.look").status == "pending": holds, seen("desk.look").status is \'pending\'; '
        "where args.to == principal: holds, args.to is 'alice', principal is 'alice'"
    )


def test_it_says_what_exceptions_times_and_limits_came_to() -> None:
    assert why(pay(to="bob"), "deny", unless={"to": {"equals": "bob"}}) == (
        "unless to: equals \"bob\": holds, to is 'bob'"
    )
    assert why(pay(), during={"days": "sun"}) == "during sun UTC: does not hold"
    assert why(pay(), "deny", outside={"days": "mon"}) == "outside mon UTC: does not hold"
    limit = {"per": "day", "calls": 2}
    key = parse_rule({"effect": "allow", "limit": limit}, 1).limit.key("rule-1", pay())  # type: ignore[union-attr]
    spent = pay(Facts(taken={key: (2, Decimal(0))}))
    assert why(spent, limit=limit) == "limit 2 calls per day: is reached, 2 calls so far"
    assert why(spent, "deny", limit=limit) == "limit 2 calls per day: is reached, 2 calls so far"
    assert why(pay(), limit=limit) == "limit 2 calls per day: unknown"
    assert why(pay(cc="eve"), only=["to"]) == "only: the call also has cc"


def test_every_rule_has_its_part() -> None:
    policy = Policy.parse(
        [
            {"effect": "allow"},
            {"effect": "ask"},
            {"effect": "ask", "approvals": 2},
            {"effect": "deny", "tools": ["fs.read"]},
        ]
    )
    assert parts(explain(policy, query())) == ["overruled", "joined", "decided", "no match"]


def test_ask_rules_that_deny_together_are_shown_together() -> None:
    rules = [{"effect": "ask", "approvers": [name]} for name in ("bob", "carol")]
    explanation = explain(Policy.parse([*rules, {"effect": "allow"}]), query())
    assert explanation.decision.effect == "deny"
    assert parts(explanation) == ["decided", "joined", "overruled"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"tools": ["fs.read", "web.*"]}, "tools: fs.write is not among fs.read, web.*"),
        ({"providers": ["mcp_*"]}, "providers: builtin is not among mcp_*"),
        ({"levels": ["L0"]}, "levels: the tool is treated as L1"),
        ({"callers": ["bob"]}, "callers: session:alice is not among bob"),
        (
            {"when": {"path": {"glob": "docs/**"}}},
            "when path: glob [\"docs/**\"]: does not hold, path is 'src/a'",
        ),
        ({"when": {"content": {"max_length": 9}}}, "when content: max_length 9: unknown, content is missing"),
    ],
)
def test_it_says_why_a_rule_did_not_match(said: dict[str, Any], expected: str) -> None:
    assert why(query(path="src/a"), **said) == expected


def test_a_job_is_shown_with_its_recipe() -> None:
    assert why(query(WRITE, job("triage")), callers=["bob"]) == "callers: job:triage/alice is not among bob"


def test_it_says_which_doubt_made_a_deny_rule_match() -> None:
    said = why(query(), "deny", when={"path": {"glob": "docs/**"}})
    assert said == 'when path: glob ["docs/**"]: unknown, path is missing'


def test_a_place_that_only_some_items_lack_is_said_to_be_missing_in_places() -> None:
    asked = query(WRITE, files=[{"path": "docs/a"}, {}])
    assert why(asked, when={"files.path": {"glob": "docs/**"}}).endswith("files.path is missing in places")


def test_it_shows_the_level_and_the_default() -> None:
    explanation = explain(Policy.parse([{"effect": "allow"}]), query(EXEC))
    assert (explanation.level, explanation.default.rule_id) == ("L2", "default:L2")
    assert explain(Policy(), query(READ)).level == "L0"


def test_an_unknown_tool_is_explained_too() -> None:
    unknown = Query(tool=None, key="no.such_tool", args={}, caller=ALICE)
    explanation = explain(Policy.parse([{"effect": "allow"}]), unknown)
    assert (explanation.decision, explanation.level) == (UNKNOWN_TOOL, "")
    assert [(one.part, one.why) for one in explanation.considered] == [("no match", "the tool is unknown")]


def test_what_made_a_decision_fail_is_shown() -> None:
    asked = Query(tool=WRITE, key="fs_write", args=Hostile(), caller=ALICE)
    explanation = explain(Policy.parse([{"effect": "allow", "when": {"path": {"glob": "a"}}}]), asked)
    assert explanation.decision.rule_id == ERROR_ID
    (considered,) = explanation.considered
    assert (considered.part, considered.why) == ("no match", "cannot be evaluated: RuntimeError: no")


def test_remembered_approvals_are_explained_too() -> None:
    explanation = explain(Policy(), call(), [remembered(tool="fs.edit"), remembered(), remembered(id="app_2")])
    assert explanation.decision.rule_id == "remembered:app_1"
    assert [one.part for one in explanation.remembered] == ["no match", "decided", "joined"]
    assert explanation.remembered[0].why == "it covers fs.edit of builtin"


def test_where_nothing_is_asked_a_remembered_approval_answers_nothing() -> None:
    explanation = explain(Policy.parse([{"effect": "deny"}]), call(), [remembered()])
    assert explanation.decision.effect == "deny"
    assert explanation.remembered[0].why == "nothing is asked"


def test_a_long_argument_is_cut() -> None:
    assert len(why(query(COMMENT, body="x" * 10_000), when={"body": {"max_length": 9}})) < 200
