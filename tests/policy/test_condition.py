"""What rules may ask for beside caller and arguments, and what a policy makes of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import PolicyError
from remit.policy.cases import CaseFacts
from remit.policy.decision import EFFECTS, Facts, Query
from remit.policy.overlay import parse_overlay
from remit.policy.rule import parse_rule
from remit.policy.rules import NO_NEEDS, Policy
from remit.tools.meta import Level
from tests.policy.samples import ALICE, READ, WRITE, decide, query, rule, tool, verdict

PAY = tool("desk.pay", Level.L1, "to", "cents", "note")
LOOK = tool("desk.look", Level.L0, "order")
PENDING = {"where": 'seen("desk.look").status == "pending"', "tools": ["desk.pay"]}
MONDAY = 1_777_881_600_000_000  # 2026-05-04, 08:00 UTC


def pay(facts: Facts | None = None, now: int = MONDAY, **args: Any) -> Query:
    return Query(tool=PAY, key="desk", args=args, caller=ALICE, now=now, facts=facts)


@pytest.mark.parametrize(
    ("args", "effect"),
    [({"to": "bob"}, "ask"), ({"to": "eve"}, "deny"), ({}, "deny"), ({"to": None}, "deny"), ({"to": "BOB"}, "deny")],
)
def test_a_deny_rule_may_have_exceptions_that_certainly_hold(args: dict[str, Any], effect: str) -> None:
    assert decide(pay(**args), {"effect": "deny", "unless": {"to": {"in": ["bob", "ann"]}}}).effect == effect


@pytest.mark.parametrize(
    ("args", "effect"), [({"to": "bob"}, "allow"), ({"to": "eve"}, "ask"), ({}, "ask"), ({"to": "EVE"}, "ask")]
)
def test_an_allow_rule_may_have_exceptions_that_may_hold(args: dict[str, Any], effect: str) -> None:
    assert decide(pay(**args), {"effect": "allow", "unless": {"to": {"equals": "eve"}}}).effect == effect


def test_all_exceptions_have_to_hold_together() -> None:
    said = {"effect": "deny", "unless": {"to": {"equals": "bob"}, "cents": {"max": 100}}}
    assert decide(pay(to="bob", cents=100), said).effect == "ask"
    assert decide(pay(to="bob", cents=101), said).effect == "deny"


@pytest.mark.parametrize(
    ("value", "wide", "expected"),
    [
        ("a", False, False), ("c", False, True), ("A", False, False), ("A", True, True), ("a", True, False),
        (["c", "d"], False, True), (["c", "a"], False, False), (["c", "a"], True, True), (1, False, None),
    ],
)  # fmt: skip
def test_not_in(value: Any, wide: bool, expected: bool | None) -> None:
    assert verdict({"not_in": ["a", "b"]}, value, wide=wide) is expected


@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize(
    ("args", "expected"), [({}, True), ({"to": "bob"}, True), ({"to": "eve"}, False)]
)  # fmt: skip
def test_absent_or_one_of(effect: str, args: dict[str, Any], expected: bool) -> None:
    assert rule(effect, when={"to": {"optional": True, "in": ["bob"]}}).matches(pay(**args)) == expected


def test_optional_needs_something_to_be() -> None:
    for said in ({"optional": True}, {"optional": True, "present": True}, {"optional": False, "equals": 1}):
        with pytest.raises(PolicyError):
            rule(when={"to": said})


def test_a_default_speaks_where_no_other_rule_does() -> None:
    rules: list[dict[str, Any]] = [
        {"id": "closed", "effect": "deny", "default": True, "tools": ["desk.*"]},
        {"id": "bob", "effect": "allow", "when": {"to": {"equals": "bob"}}},
        {"id": "eve", "effect": "ask", "when": {"to": {"equals": "eve"}}},
    ]
    assert decide(pay(to="bob"), *rules).rule_id == "bob"
    assert decide(pay(to="eve"), *rules).rule_id == "eve"
    assert decide(pay(to="carl"), *rules).rule_id == "closed"
    assert decide(query(WRITE, path="x", to="dave"), *rules).rule_id == "default:L1"


def test_of_defaults_and_the_level_the_strictest_counts() -> None:
    asks = {"id": "asks", "effect": "ask", "default": True, "approvals": 2}
    assert decide(query(READ, path="x"), asks).rule_id == "asks"
    assert decide(pay(), asks).approvals == 2
    assert decide(pay(), asks, {"id": "no", "effect": "deny", "default": True}).rule_id == "no"
    with pytest.raises(PolicyError, match="default"):
        rule("allow", default=True)


def test_neither_a_doubt_nor_what_a_job_adds_lifts_a_default_that_denies() -> None:
    closed: dict[str, Any] = {"id": "closed", "effect": "deny", "default": True}
    assert decide(pay(Facts()), closed, {"effect": "deny", **PENDING}).rule_id == "closed"
    policy = Policy.parse([closed]).under([parse_overlay("job", [{"effect": "ask"}])])
    assert policy.decide(pay()).rule_id == "closed"
    asks = Policy.parse([{**closed, "effect": "ask", "approvals": 2}]).under(
        [parse_overlay("job", [{"effect": "ask"}])]
    )
    assert asks.decide(pay()).approvals == 2


def test_a_rule_holds_during_its_hours_and_another_outside() -> None:
    work = {"days": ["mon-fri"], "hours": "09:00-17:00"}
    early, ten = pay(now=MONDAY), pay(now=MONDAY + 2 * 3_600_000_000)
    assert [decide(one, {"effect": "allow", "during": work}).effect for one in (early, ten, pay(now=0))] == [
        "ask", "allow", "ask",
    ]  # fmt: skip
    assert [decide(one, {"effect": "deny", "outside": work}).effect for one in (early, ten, pay(now=0))] == [
        "deny", "ask", "deny",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "allowed", "asked", "denied"),
    [
        ({"desk.look": {"status": "pending"}}, "allow", "ask", "deny"),
        ({"desk.look": {"status": "sent"}}, "ask", "ask", "ask"),
        ({}, "ask", "ask", "ask"),  # unknown asks, also for a rule that denies
    ],
)
def test_a_condition_over_earlier_results(seen: dict[str, Any], allowed: str, asked: str, denied: str) -> None:
    for effect, expected in (("allow", allowed), ("ask", asked), ("deny", denied)):
        assert decide(pay(Facts(seen=seen)), {"effect": effect, **PENDING}).effect == expected


def test_a_doubt_asks_although_a_rule_allows_and_no_remembered_approval_answers_it() -> None:
    found = decide(pay(Facts()), {"effect": "allow"}, {"id": "pending", "effect": "deny", **PENDING})
    assert (found.effect, found.rule_id, found.doubt) == ("ask", "pending", True)


def test_relations_between_arguments_and_to_the_caller_and_the_job() -> None:
    said = {"effect": "allow", "where": "args.to == principal and args.cents <= input.most"}
    facts = Facts(input={"most": 100})
    assert decide(pay(facts, to="alice", cents=100), said).effect == "allow"
    assert decide(pay(facts, to="alice", cents=101), said).effect == "ask"
    assert decide(pay(facts, to="bob", cents=1), said).effect == "ask"
    assert decide(pay(None, to="alice", cents=1), said).effect == "ask"


def test_only_rules_that_ask_for_facts_have_them_looked_up() -> None:
    policy = Policy.parse([{"effect": "allow", "tools": ["fs.*"]}, {"effect": "deny", **PENDING}])
    assert policy.needs_facts
    assert policy.needs(WRITE, "fs") is NO_NEEDS
    assert policy.needs(PAY, "desk").tools == {"desk.look"}
    assert not Policy.parse([{"effect": "allow", "where": "args.a == 1"}]).needs_facts


def test_a_rule_says_in_its_hash_what_it_asks_for() -> None:
    plain = {"id": "r", "effect": "deny", "tools": ["desk.pay"]}
    more: list[dict[str, Any]] = [
        {"unless": {"to": {"equals": "bob"}}},
        {"during": {"days": "mon"}},
        {"outside": {"days": "mon"}},
        {"limit": {"per": "day", "calls": 1}},
        {"limit": {"per": "day", "calls": 2}},
        {"where": "args.cents > 1"},
        {"where": "args.cents > 2"},
        {"default": True},
        {"when": {"to": {"not_in": ["bob"]}}},
        {"when": {"to": {"optional": True, "in": ["bob"]}}},
        {"when": {"to": {"in": ["bob"]}}},
    ]
    hashes = {Policy.parse([plain | one]).hash for one in [{}, *more]}
    assert len(hashes) == len(more) + 1
    assert (
        Policy.parse([plain | {"where": "args.cents>1"}]).hash
        == Policy.parse([plain | {"where": "args.cents > 1"}]).hash
    )


def test_a_rule_of_older_settings_has_the_hash_it_had() -> None:
    said = parse_rule({"id": "r", "effect": "allow", "tools": ["fs.*"], "when": {"path": {"glob": "a"}}}, 1).canonical()
    assert set(said) == {"id", "effect", "tools", "when", "reason"}


EXTRAS = st.fixed_dictionaries(
    {"effect": st.sampled_from(["ask", "deny"])},
    optional={
        "default": st.booleans(),
        "unless": st.just({"to": {"equals": "bob"}}),
        "where": st.sampled_from(["args.cents > 3", 'seen("desk.look").a == 1', "not input.x", 'principal == "alice"']),
        "during": st.just({"days": "mon"}),
        "outside": st.just({"days": "mon"}),
        "limit": st.sampled_from([{"per": "day", "calls": 1}, {"per": "job", "sum": "cents", "max": 4}]),
        "when": st.sampled_from([{"to": {"not_in": ["eve"]}}, {"to": {"optional": True, "in": ["bob"]}}]),
    },
)
CONFIGURED = st.lists(EXTRAS | st.just({"effect": "allow"}) | st.just({"effect": "allow", **PENDING}), max_size=3)
CALLS = st.builds(
    lambda args, taken, seen, now: CaseFacts(results=seen, taken=taken).to(Policy(), pay(now=now, **args)),
    st.dictionaries(st.sampled_from(["to", "cents"]), st.sampled_from(["bob", "eve", 2, 5])),
    st.just({}),
    st.sampled_from([{}, {"desk.look": {"a": 1, "status": "pending"}}]),
    st.sampled_from([0, MONDAY]),
)


@given(CONFIGURED, st.lists(EXTRAS, max_size=3), CALLS)
def test_what_a_job_adds_never_lets_a_call_through(
    configured: list[dict[str, Any]], added: list[dict[str, Any]], asked: Query
) -> None:
    policy = Policy.parse(configured)
    narrowed = policy.under([parse_overlay("job", added)])
    assert EFFECTS.index(narrowed.decide(asked).effect) >= EFFECTS.index(policy.decide(asked).effect)
    assert narrowed.decide(asked).rule_id != "default:error"
