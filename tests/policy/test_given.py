from typing import Any

import pytest

from remit.errors import PolicyError
from remit.policy.cases import TestResult, run_tests
from remit.policy.rules import Policy
from tests.policy.test_condition import LOOK, PAY

POLICY = Policy.parse(
    [
        {"id": "pending", "effect": "allow", "where": 'seen("desk.look").status == "pending" and input.to == args.to'},
        {"id": "enough", "effect": "deny", "limit": {"per": "day", "by": "principal", "calls": 2}},
        {"id": "job", "effect": "deny", "limit": {"per": "job", "sum": "cents", "max": 10}},
        {"id": "night", "effect": "deny", "during": {"hours": "22:00-06:00"}},
    ]
)
CALL = {
    "tool": "desk.pay",
    "args": {"to": "bob", "cents": 3},
    "input": {"to": "bob"},
    "seen": {"desk.look": {"status": "pending"}},
    "at": "2026-05-01T12:00:00Z",
    "expect": "allow",
}


def run(**said: Any) -> TestResult:
    (result,) = run_tests(POLICY, [PAY, LOOK], [CALL | said])
    return result


@pytest.mark.parametrize(
    ("said", "expect", "rule"),
    [
        ({}, "allow", "pending"),
        ({"seen": {}}, "ask", "default:L1"),
        ({"input": {}}, "ask", "default:L1"),
        ({"seen": {"desk.look": {"status": "sent"}}}, "ask", "default:L1"),
        ({"taken": {"enough": {"calls": 1}}}, "allow", "pending"),
        ({"taken": {"enough": {"calls": 2}}}, "deny", "enough"),
        ({"taken": {"job": {"sum": 7.5}}}, "deny", "job"),
        ({"taken": {"job": {"calls": 1, "sum": 7}}}, "allow", "pending"),
        ({"at": "2026-05-01T23:00:00"}, "deny", "night"),
    ],
)
def test_a_test_gives_what_a_rule_asks_for(said: dict[str, Any], expect: str, rule: str) -> None:
    assert run(**said, expect=expect, rule=rule).problem == ""


@pytest.mark.parametrize(
    "said",
    [
        {"seen": []}, {"taken": 3}, {"taken": {"job": 3}}, {"taken": {"job": {"calls": -1}}}, {"at": "soon"}, {"at": 5},
        {"taken": {"job": {"call": 1}}},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="test 1"):
        run(**said)
