from typing import Any

import pytest

from remit.policy.lint import KINDS, LintFinding, lint
from remit.tools.meta import Level
from tests.policy.samples import TOOLS, tool


def findings(*rules: dict[str, Any], tools: tuple[Any, ...] = TOOLS) -> list[LintFinding]:
    return lint(rules, tools)


def kinds(*rules: dict[str, Any], tools: tuple[Any, ...] = TOOLS) -> list[tuple[str, str]]:
    return [(finding.rule_id, finding.kind) for finding in lint(rules, tools)]


GOOD = {"effect": "allow", "tools": ["fs.write"], "when": {"path": {"glob": "docs/**"}}}


def test_a_good_policy_has_no_findings() -> None:
    deny = {"effect": "deny", "when": {"path": {"glob": "secret/**"}}}
    ask = {"effect": "ask", "tools": ["github"], "approvals": 2}
    assert findings(GOOD, deny, ask) == []


def test_a_rule_that_cannot_be_understood_is_found_and_the_others_are_looked_at() -> None:
    first, second = findings({"effct": "allow"}, {"effect": "deny", "tools": ["nothing.here"]})
    assert (first.kind, first.severity, first.number, first.rule_id) == ("invalid", "error", 1, "rule-1")
    assert first.remedy == 'Did you mean "effect"?'
    assert (second.kind, second.rule_id) == ("dead", "rule-2")


def test_an_id_that_is_there_twice_is_found() -> None:
    assert kinds(GOOD | {"id": "x"}, {"effect": "deny", "levels": ["L2"], "id": "x"}) == [("x", "invalid")]


def test_a_rule_about_no_tool_is_dead() -> None:
    (finding,) = findings({"effect": "deny", "tools": ["fs.wirte"]})
    assert (finding.kind, finding.severity) == ("dead", "warning")
    assert finding.remedy == 'Did you mean "fs.write"?'


@pytest.mark.parametrize("said", [{"providers": ["mcp_gitlab"]}, {"tools": ["fs.read"], "levels": ["L2"]}])
def test_a_rule_can_be_dead_by_any_of_its_parts(said: dict[str, Any]) -> None:
    assert kinds({"effect": "deny"} | said) == [("rule-1", "dead")]


def test_a_pattern_about_no_tool_is_found_beside_those_that_are() -> None:
    (finding,) = findings({"effect": "deny", "tools": ["fs.write", "githubb"]})
    assert (finding.kind, finding.remedy) == ("dead-pattern", 'Did you mean "github"?')


def test_a_glob_of_keys_is_dead_in_an_allow_rule_which_takes_only_names() -> None:
    assert kinds({"effect": "allow", "tools": ["githu*"]}) == [("rule-1", "dead")]
    assert kinds({"effect": "deny", "tools": ["githu*"]}) == []


def test_a_tool_that_no_catalog_lists_counts_where_a_rule_names_it() -> None:
    unlisted = [tool("agent_x.bash", Level.L2)]
    rules = [{"effect": "deny", "tools": ["agent_x.*"]}, {"effect": "deny", "tools": ["agent_y.*"]}]
    assert [(each.rule_id, each.kind) for each in lint(rules, TOOLS, unlisted=unlisted)] == [("rule-2", "dead")]
    every = [{"effect": "allow", "tools": ["*"], "levels": ["L2"]}]
    assert lint(every, TOOLS, unlisted=unlisted) == lint(every, TOOLS)


def test_without_a_catalog_nothing_is_dead() -> None:
    assert findings({"effect": "deny", "tools": ["nothing.here"]}, tools=()) == []


@pytest.mark.parametrize(
    "stricter",
    [
        {"effect": "deny"},
        {"effect": "deny", "tools": ["fs.*"]},
        {"effect": "ask", "tools": ["fs.write", "fs.read"]},
        {"effect": "deny", "tools": ["fs.write"], "when": {"path": {"glob": "docs/**"}}},
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_rule_is_shadowed_by_a_stricter_one_wherever_it_stands(stricter: dict[str, Any], first: bool) -> None:
    narrow = GOOD | {"id": "narrow", "callers": ["alice"]}
    rules = [stricter, narrow] if first else [narrow, stricter]
    assert ("narrow", "shadowed") in kinds(*rules)


def test_several_rules_can_shadow_one_together() -> None:
    rule = {"effect": "allow", "id": "x", "tools": ["fs.write", "fs.edit"]}
    one, other = {"effect": "deny", "tools": ["fs.write"]}, {"effect": "deny", "tools": ["fs.edit"]}
    assert kinds(rule, one, other) == [("x", "shadowed")]
    assert kinds(rule, one) == []


@pytest.mark.parametrize(
    "other",
    [
        {"effect": "deny", "callers": ["bob"]},
        {"effect": "deny", "when": {"path": {"glob": "secret/**"}}},
        {"effect": "deny", "tools": ["fs.read"]},
        {"effect": "ask", "when": {"path": {"glob": "docs/**", "max_length": 9}}},
    ],
)
def test_a_rule_that_may_still_decide_is_not_shadowed(other: dict[str, Any]) -> None:
    assert kinds(GOOD | {"id": "x"}, other) == []


@pytest.mark.parametrize("more", [{}, {"tools": ["fs.*"]}])
@pytest.mark.parametrize("effect", ["ask", "deny"])
def test_a_rule_beyond_a_limit_leaves_those_within_it_to_decide(effect: str, more: dict[str, Any]) -> None:
    within = GOOD | {"id": "x", "limit": {"per": "day", "calls": 3}}
    assert kinds(within, within | {"id": "y", "effect": effect} | more) == []
    assert kinds(within, within | {"id": "y"}) == [("y", "shadowed")]


def test_of_two_equal_rules_the_later_is_shadowed() -> None:
    assert kinds(GOOD | {"id": "a"}, GOOD | {"id": "b"}) == [("b", "shadowed")]


def test_a_narrow_rule_before_a_wide_one_of_its_effect_decides_with_its_own_reason() -> None:
    narrow, wide = {"effect": "deny", "tools": ["fs.write"]}, {"effect": "deny", "tools": ["fs.*"]}
    assert kinds(narrow, wide) == []
    assert kinds(wide, narrow) == [("rule-2", "shadowed")]


def test_an_ask_rule_that_demands_more_is_not_shadowed_by_one_that_demands_less() -> None:
    wide = {"effect": "ask", "tools": ["fs.*"]}
    for more in ({"approvals": 2}, {"approvers": ["bob"]}, {"expires": "1h"}):
        assert kinds(wide, {"effect": "ask", "tools": ["fs.write"]} | more) == []
    assert kinds(wide | {"approvals": 2}, {"effect": "ask", "tools": ["fs.write"]}) == [("rule-2", "shadowed")]


def test_two_effects_for_the_same_conditions_contradict_each_other() -> None:
    (finding,) = findings(GOOD | {"id": "yes"}, GOOD | {"effect": "deny", "id": "no"})
    assert (finding.kind, finding.severity, finding.rule_id) == ("contradiction", "error", "yes")
    assert finding.message == "has effect allow, but no has effect deny under the same conditions"


def test_shadows_and_contradictions_are_found_without_a_catalog() -> None:
    assert kinds(GOOD, GOOD | {"effect": "deny"}, tools=()) == [("rule-1", "contradiction")]
    assert kinds(GOOD, {"effect": "deny", "tools": ["fs.write"]}, tools=()) == [("rule-1", "shadowed")]


def test_ask_rules_that_meet_and_share_no_approvers_are_found() -> None:
    one = {"effect": "ask", "tools": ["fs.*"], "approvers": ["bob"]}
    other = {"effect": "ask", "tools": ["fs.write"], "approvers": ["carol"]}
    (finding,) = findings(one, other)
    assert (finding.kind, finding.severity, finding.rule_id) == ("nobody-approves", "error", "rule-2")
    assert kinds(one, other | {"tools": ["github"]}) == []


def test_ask_rules_that_meet_and_share_fewer_approvers_than_one_of_them_needs_are_found() -> None:
    one = {"effect": "ask", "tools": ["fs.*"], "approvers": ["bob", "carol"], "approvals": 2}
    other = {"effect": "ask", "tools": ["fs.write"], "approvers": ["carol", "dan"]}
    assert kinds(one, other) == [("rule-2", "nobody-approves")]


def test_a_constraint_on_an_argument_that_no_tool_has_is_found() -> None:
    (finding,) = findings({"effect": "deny", "tools": ["fs.*"], "when": {"pth": {"glob": "secret/**"}}})
    assert (finding.kind, finding.severity) == ("unknown-argument", "error")
    assert finding.remedy == 'Did you mean "path"?'


def test_a_constraint_on_an_argument_that_some_tool_has_is_fine() -> None:
    assert kinds({"effect": "deny", "when": {"path": {"glob": "secret/**"}}}) == []


def test_allowing_an_l2_tool_with_any_arguments_is_a_warning() -> None:
    (finding,) = findings({"effect": "allow", "callers": ["job:*"]})
    assert (finding.kind, finding.severity) == ("unbounded", "warning")
    assert "sandbox.exec (L2)" in finding.message


def test_bounding_an_l2_tool_by_how_a_command_begins_is_a_warning() -> None:
    rule = {"effect": "allow", "tools": ["sandbox.exec"]}
    assert kinds(rule | {"when": {"command": {"prefix": "git "}}}) == [("rule-1", "loose")]
    assert kinds(rule | {"when": {"command": {"in": ["git status"]}}}) == []


def test_allowing_what_runs_anyway_is_redundant() -> None:
    assert kinds({"effect": "allow", "tools": ["fs.read", "fs.list"]}) == [("rule-1", "redundant")]
    assert kinds({"effect": "ask", "tools": ["fs.read"]}) == []


def test_findings_come_in_the_order_of_the_rules() -> None:
    rules: list[dict[str, Any]] = [
        {"effect": "deny", "tools": ["nothing.here"]},
        {"effect": "allow", "tools": ["fs.read"]},
        {"x": 1},
    ]
    assert [finding.number for finding in findings(*rules)] == [1, 2, 3]


def test_every_kind_is_described() -> None:
    assert all(meaning.endswith(".") for meaning in KINDS.values())


def test_an_allow_rule_that_forgets_an_argument_that_reaches_somebody() -> None:
    mail = tool("mail.send", Level.L1, "to", "cc", "body")
    bounded: dict[str, Any] = {
        "effect": "allow",
        "tools": ["mail.send"],
        "when": {"to": {"equals": "bob@acme.example"}},
    }
    assert [(one.kind, one.message) for one in lint([bounded], [mail])] == [
        ("open-arguments", "limits to, but 'cc' of mail.send may be anything")
    ]
    assert lint([{**bounded, "only": ["to", "body"]}], [mail]) == []
    assert lint([{**bounded, "when": bounded["when"] | {"cc": {"absent": True}}}], [mail]) == []
    assert "unknown-argument" in [one.kind for one in lint([{**bounded, "only": ["to", "boddy"]}], [mail])]


@pytest.mark.parametrize("taint", ["ask", "deny"])
def test_taint_on_a_tool_that_writes_and_names_no_role_is_never_looked_at(taint: str) -> None:
    rule = {"effect": "allow", "tools": ["board.post"], "taint": taint}
    (finding,) = lint([rule], [tool("board.post", Level.L1, "body")])
    assert (finding.kind, finding.message) == ("idle-taint", "has taint, but no argument of board.post has a role")
    assert lint([rule], [tool("board.post", Level.L1, "body", "channel")]) == []
