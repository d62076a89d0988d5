"""Overlays: what a job, a ticket or a skill adds to the policy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import PolicyError
from remit.policy.decision import EFFECTS, Query
from remit.policy.overlay import parse_overlay, within
from remit.policy.rules import Policy
from tests.policy.samples import READ, WRITE, caller, query
from tests.policy.test_rules import POLICIES, QUERIES

ALL = Policy.parse([{"id": "all", "effect": "allow", "tools": ["*"]}])
ME = caller("session", "alice")


def test_a_rule_of_an_overlay_restricts_its_calls_and_is_named_after_its_source() -> None:
    overlay = parse_overlay("job", [{"id": "no-writes", "effect": "deny", "tools": ["fs.write"]}])
    assert ALL.decide(query(WRITE, ME)).effect == "allow"
    decision = ALL.under((overlay,)).decide(query(WRITE, ME))
    assert (decision.effect, decision.rule_id) == ("deny", "job:no-writes")


def test_what_it_does_not_speak_of_stays_as_it_was() -> None:
    overlay = parse_overlay("job", [{"effect": "deny", "tools": ["fs.write"]}])
    assert ALL.under((overlay,)).decide(query(READ, ME)) == ALL.decide(query(READ, ME))


@pytest.mark.parametrize(
    ("tools", "effect"),
    [(("fs.read",), "deny"), (("fs.write",), "allow"), (("fs.*",), "allow"), (("fs_write",), "allow"), ((), "deny")],
)
def test_only_listed_tools_may_be_called(tools: tuple[str, ...], effect: str) -> None:
    policy = ALL.under((parse_overlay("ticket", tools=tools),))
    decision = policy.decide(query(WRITE, ME))
    assert decision.effect == effect
    assert policy.forbids(WRITE, "fs_write", ME) is (effect == "deny")
    if effect == "deny":
        assert decision.rule_id == "ticket:tools"
        assert "fs.write is not among the tools that the ticket may call" in decision.reason


def test_a_list_allows_nothing_that_the_policy_denies() -> None:
    nothing = Policy.parse([{"id": "none", "effect": "deny", "tools": ["*"]}])
    assert nothing.under((parse_overlay("job", tools=["fs.write"]),)).decide(query(WRITE, ME)).rule_id == "none"


def test_a_rule_that_allows_is_refused() -> None:
    with pytest.raises(PolicyError, match="can only restrict"):
        parse_overlay("job", [{"effect": "allow", "tools": ["*"]}])


@pytest.mark.parametrize("tools", [["a b"], ["fs__write"], ["", "x"], [1]])
def test_a_pattern_that_names_no_tool_is_refused(tools: Any) -> None:
    with pytest.raises(PolicyError):
        parse_overlay("job", tools=tools)


def test_a_narrowed_policy_has_a_hash_of_its_own_and_is_made_once() -> None:
    one, other = parse_overlay("job", tools=["fs.read"]), parse_overlay("job", tools=["fs.write"])
    assert ALL.under(()) is ALL
    assert ALL.under((one,)) is ALL.under((parse_overlay("job", tools=["fs.read"]),))
    assert len({ALL.hash, ALL.under((one,)).hash, ALL.under((other,)).hash, ALL.under((one, other)).hash}) == 4
    assert parse_overlay("job").key != parse_overlay("job", tools=[]).key


RESTRICTIONS = st.lists(
    st.fixed_dictionaries(
        {"effect": st.sampled_from(["deny", "ask"])},
        optional={
            "tools": st.sampled_from([["fs.*"], ["*"], ["fs.write"], ["mcp.*"]]),
            "approvals": st.just(2),
            "when": st.just({"path": {"glob": "docs/**"}}),
        },
    ).map(lambda rule: rule if rule["effect"] == "ask" else {k: v for k, v in rule.items() if k != "approvals"}),
    max_size=3,
)
LISTS = st.none() | st.lists(st.sampled_from(["fs.read", "fs.*", "*"]), unique=True)


@given(POLICIES, QUERIES, RESTRICTIONS, LISTS)
def test_an_overlay_only_makes_a_decision_stricter(
    configured: list[Any], asked: Query, rules: list[dict[str, Any]], tools: list[str] | None
) -> None:
    policy = Policy.parse(configured)
    before = policy.decide(asked)
    after = policy.under((parse_overlay("job", rules, tools),)).decide(asked)
    assert EFFECTS.index(after.effect) >= EFFECTS.index(before.effect)
    if before.effect == after.effect == "ask":
        assert after.approvals >= before.approvals
        assert not before.approvers or set(after.approvers) <= set(before.approvers)


@pytest.mark.parametrize(
    ("pattern", "tools", "expected"),
    [
        ("fs.read", ["fs.*"], True),
        ("fs.read", ["fs.write", "fs.read"], True),
        ("fs.re*", ["fs.*"], True),
        ("fs.*", ["fs.*"], True),
        ("f?.*", ["f?.*"], True),
        ("*", ["fs.*"], False),
        ("fs.*", ["fs.read"], False),
        ("fs.*", ["fs.?"], False),
        ("fs.rea?", ["fs.read", "fs.?ead"], False),
    ],
)
def test_a_pattern_is_within_those_that_cover_all_that_it_covers(
    pattern: str, tools: list[str], expected: bool
) -> None:
    assert within(pattern, tools) == expected
