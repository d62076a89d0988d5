from typing import Any

import pytest

from remit.errors import PolicyError
from remit.policy.groups import expanded, may_decide, parse_groups
from remit.policy.rules import Policy
from tests.policy.samples import ALICE, WRITE, caller, query

GROUPS = parse_groups({"clerks": ["alice", "bob"], "files": ["fs.*", "mcp.drive.*"]})


def test_members_stand_in_the_place_of_a_group() -> None:
    rule = {"effect": "ask", "tools": ["@files", "x.y"], "callers": "@clerks", "approvers": ["@clerks", "carol"]}
    assert expanded([rule], GROUPS) == [
        {"effect": "ask", "tools": ["fs.*", "mcp.drive.*", "x.y"], "callers": ["alice", "bob"],
         "approvers": ["alice", "bob", "carol"]}
    ]  # fmt: skip


def test_a_group_may_be_bound_to_where_it_calls_from() -> None:
    rule = {"callers": ["mcp:@clerks", "job:triage/@clerks", "ann@acme.example", "http:ann@clerks"]}
    assert expanded([rule], GROUPS) == [
        {"callers": ["mcp:alice", "mcp:bob", "job:triage/alice", "job:triage/bob", "ann@acme.example",
                     "http:ann@clerks"]}
    ]  # fmt: skip


def test_a_policy_speaks_of_its_groups() -> None:
    policy = Policy.parse([{"effect": "allow", "tools": "@files", "callers": "@clerks"}], groups=GROUPS)
    assert policy.decide(query(WRITE, ALICE)).effect == "allow"
    assert policy.decide(query(WRITE, caller("session", "eve"))).effect == "ask"
    same = Policy.parse([{"effect": "allow", "tools": ["fs.*", "mcp.drive.*"], "callers": ["alice", "bob"]}])
    assert policy.hash == same.hash  # what the hash covers is who is meant


def test_a_group_that_there_is_not_is_an_error() -> None:
    with pytest.raises(PolicyError, match="@clerk'") as caught:
        expanded([{"id": "x", "callers": ["@clerk"]}], GROUPS)
    assert "clerks" in caught.value.remedy


@pytest.mark.parametrize("raw", [{"a b": ["x"]}, {"a": []}, {"a": [1]}, {"a": ["@b"]}, {"a": {"b": "c"}}, {"": ["x"]}])
def test_what_is_no_group_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        parse_groups(raw)


def test_what_is_no_list_is_left_to_whoever_reads_the_rule() -> None:
    assert expanded([{"tools": 5, "callers": ["@clerks", 7]}, "x"], GROUPS) == [
        {"tools": 5, "callers": ["alice", "bob", 7]},
        "x",
    ]


def test_a_group_of_the_provider_stays_a_name_among_approvers_alone() -> None:
    groups = {**GROUPS, "idp:payments": ("eve",)}
    assert expanded([{"effect": "ask", "approvers": ["@idp:payments", "@clerks"]}], groups) == [
        {"effect": "ask", "approvers": ["@idp:payments", "alice", "bob"]}
    ]
    with pytest.raises(PolicyError):
        expanded([{"id": "x", "callers": ["@idp:sales"]}], GROUPS)


@pytest.mark.parametrize(
    ("approvers", "who", "groups", "may"),
    [
        ((), "ann", (), True),
        (("ann",), "ann", (), True),
        (("@idp:payments",), "ann", ("payments",), True),
        (("@idp:payments",), "ann", ("sales",), False),
        (("@idp:payments",), "@idp:payments", (), False),
        (("@idp:payments", "bob"), "bob", (), True),
    ],
)
def test_who_may_decide(approvers: tuple[str, ...], who: str, groups: tuple[str, ...], may: bool) -> None:
    assert may_decide(approvers, who, groups) is may


def test_a_group_of_the_provider_may_have_as_many_people_as_a_rule_asks_for() -> None:
    rule = {"id": "x", "effect": "ask", "tools": [WRITE.name], "approvals": 2, "approvers": ["@idp:payments"]}
    decided = Policy.parse([rule], groups=GROUPS).decide(query(WRITE, ALICE))
    assert (decided.effect, decided.approvers) == ("ask", ("@idp:payments",))
