from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from remit.clock import SECOND
from remit.errors import PolicyError
from remit.policy.decision import Facts, Query
from remit.policy.explain import beyond
from remit.policy.limit import Limit, parse_limit
from remit.policy.pots import filled
from remit.policy.record import policy_of
from remit.policy.rules import Policy
from remit.policy.table import Table
from tests.policy.samples import ALICE, tool

SUMS = {"refund.*": "amount", "refund.wire": "cents/100", "shop.credit": "value"}
POT = {"per": "month", "sum": SUMS, "max": 500, "zone": "Europe/Berlin"}
RULES = [
    {"id": "refunds", "effect": "allow", "tools": ["refund.*"], "limit": {"pot": "refunds"}},
    {"id": "credits", "effect": "allow", "tools": ["shop.credit"], "limit": {"pot": "refunds"}},
]


def limit(**said: Any) -> Limit:
    found = parse_limit(Table({"limit": said}, "rule 1", ("limit",)))
    assert found is not None
    return found


def asked(name: str, args: dict[str, Any], at: str = "2026-11-29T12:00", **facts: Any) -> Query:
    now = int(datetime.fromisoformat(at).replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp() * SECOND)
    return Query(tool=tool(name), key=name, args=args, caller=ALICE, now=now, facts=Facts(**facts) if facts else None)


@pytest.mark.parametrize(
    ("name", "args", "amount"),
    [
        ("refund.card", {"amount": 12.5}, Decimal("12.5")),
        ("refund.wire", {"cents": 1_999}, Decimal("19.99")),
        ("shop.credit", {"value": 3}, Decimal(3)),
        ("refund.card", {"value": 3}, None),
        ("mail.send", {"amount": 3}, None),
        ("refund.wire", {"cents": -1}, None),
    ],
)
def test_each_tool_adds_its_own_argument(name: str, args: dict[str, Any], amount: Decimal | None) -> None:
    assert limit(**POT).amount(asked(name, args)) == amount


@pytest.mark.parametrize(
    ("per", "one", "other", "together"),
    [
        ("day", "2026-11-29T00:00", "2026-11-29T23:59", True),
        ("day", "2026-11-29T23:59", "2026-11-30T00:00", False),
        ("day", "2026-10-25T00:30", "2026-10-25T23:30", True),
        ("week", "2026-11-23T00:00", "2026-11-29T23:59", True),
        ("week", "2026-11-29T23:59", "2026-11-30T00:00", False),
        ("month", "2026-11-01T00:00", "2026-11-30T23:59", True),
        ("month", "2026-11-30T23:59", "2026-12-01T00:00", False),
        ("month", "2025-11-30T12:00", "2026-11-30T12:00", False),
    ],
)
def test_a_period_ends_at_midnight_in_its_zone(per: str, one: str, other: str, together: bool) -> None:
    counted = limit(**POT | {"per": per})
    keys = {counted.key("r", asked("refund.card", {}, at)) for at in (one, other)}
    assert (len(keys) == 1) is together


def test_rules_that_share_a_pot_share_its_count_and_no_rule_of_a_job_does() -> None:
    one = limit(**POT, pot="refunds")
    query = asked("refund.card", {})
    assert one.key("refunds", query) == one.key("credits", query)
    assert one.key("job:r", query) != one.key("refunds", query)
    assert limit(**POT).key("refunds", query) != limit(**POT).key("credits", query)


def test_a_refusal_says_how_full_the_pot_is() -> None:
    policy = Policy.parse(filled(RULES, {"refunds": POT}))
    key = limit(**POT, pot="refunds").key("", asked("refund.card", {}))
    taken = {key: (7, Decimal("412.30"))}
    fits = asked("refund.card", {"amount": 87.7}, taken=taken)
    assert policy.decide(fits).rule_id == "refunds"
    full = asked("refund.card", {"amount": 87.71}, taken=taken)
    decision = policy.decide(full)
    assert decision.effect != "allow"
    assert "412.30 of 500 taken this month" in beyond(policy.rules, decision, full)
    assert "pot refunds: a sum up to 500 per month in Europe/Berlin" in beyond(policy.rules, decision, full)
    strict = Policy.parse(filled([*RULES, RULES[0] | {"id": "full", "effect": "deny"}], {"refunds": POT}))
    denied = strict.decide(full)
    assert (denied.rule_id, beyond(strict.rules, denied, full).count("412.30 of 500")) == ("full", 1)


def test_a_policy_with_pots_is_read_again_from_its_record() -> None:
    policy = Policy.parse(filled(RULES, {"refunds": POT}))
    again = policy_of(policy.text)
    assert again.hash == policy.hash
    assert [rule.limit for rule in again.rules] == [rule.limit for rule in policy.rules]


@pytest.mark.parametrize(
    ("rules", "pots"),
    [
        (RULES, {}),
        (RULES, {"refund": POT}),
        ([{"id": "r", "effect": "allow", "limit": {"pot": "refunds", "max": 3}}], {"refunds": POT}),
        ([], {"a b": POT}),
        ([], {"refunds": {"per": "year", "calls": 1}}),
        ([], {"refunds": {**POT, "zone": "Europe/Bonn"}}),
        ([], {"refunds": {**POT, "sum": {"pay": "cents/3"}}}),
        ([], {"refunds": {**POT, "sum": {"pay": 3}}}),
        ([], {"refunds": {**POT, "sum": {}}}),
    ],
)
def test_what_is_no_pot_is_refused(rules: list[dict[str, Any]], pots: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        filled(rules, pots)
