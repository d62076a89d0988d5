from typing import Any

import pytest

from remit.errors import PolicyError
from remit.policy.cases import TestResult, parse_case, run_tests
from remit.policy.rules import Policy
from tests.policy.samples import TOOLS

POLICY = Policy.parse(
    [
        {"effect": "allow", "id": "docs", "tools": ["fs.write"], "when": {"path": {"glob": "docs/**"}}},
        {"effect": "deny", "id": "guests", "callers": ["http:guest"]},
        {"effect": "deny", "id": "triage", "callers": ["job:triage/bob"]},
    ]
)


def run(**said: Any) -> TestResult:
    (result,) = run_tests(POLICY, TOOLS, [said])
    return result


def test_a_test_passes_where_the_policy_says_what_it_expects() -> None:
    assert run(tool="fs.write", args={"path": "docs/a"}, expect="allow").passed
    assert run(tool="fs.write", args={"path": "docs/a"}, expect="allow", rule="docs").passed
    assert run(tool="fs.write", expect="ask", rule="default:L1").passed


def test_a_test_fails_with_what_the_policy_said_instead() -> None:
    result = run(tool="fs.write", args={"path": "src/a"}, expect="allow")
    assert not result.passed
    assert result.problem.startswith("expected allow, but it is ask by default:L1: The tool writes")
    assert result.decision.effect == "ask"


def test_a_test_fails_where_another_rule_decided() -> None:
    result = run(tool="fs.write", args={"path": "docs/a"}, expect="allow", rule="other")
    assert result.problem == "expected rule other to decide, but it is allow by docs"


def test_a_test_says_who_calls() -> None:
    assert run(tool="fs.read", principal="guest", kind="http", expect="deny", rule="guests").passed
    assert run(tool="fs.read", principal="guest", expect="allow").passed
    assert run(tool="fs.read", principal="bob", recipe="triage", expect="deny", rule="triage").passed


def test_a_tool_is_tested_under_its_key() -> None:
    policy = Policy.parse([{"effect": "deny", "tools": ["github"]}])
    tests = [{"tool": "mcp.github.list_issues", "expect": "deny"}]
    assert [one.problem for one in run_tests(policy, TOOLS, tests)] == [""]


def test_a_tool_that_is_not_in_the_catalog_is_unknown() -> None:
    assert run(tool="fs.delete", expect="deny", rule="default:unknown-tool").passed
    assert run(tool="fs.wirte", expect="ask").problem.endswith('Did you mean "fs.write"?')


def test_results_come_in_the_order_of_the_tests() -> None:
    tests = [{"tool": "fs.read", "expect": effect} for effect in ("deny", "allow")]
    assert [(one.case.number, one.passed) for one in run_tests(POLICY, TOOLS, tests)] == [(1, False), (2, True)]


@pytest.mark.parametrize(
    ("raw", "message", "remedy"),
    [
        ({"tool": "fs.read"}, 'test 2, key "expect" is missing', "Use one of"),
        ({"expect": "deny"}, 'test 2, key "tool" is missing', "Write the full name"),
        ({"tool": "fs.read", "expects": "deny"}, 'test 2, key "expects" is not a known key', 'Did you mean "expect"?'),
        ({"tool": "fs.read", "expect": "deny", "args": []}, 'test 2, key "args" must be a table, not []', ""),
        ({"tool": "fs.read", "expect": "deny", "kind": "web"}, "test 2, key \"kind\" does not know 'web'", ""),
        (5, "test 2 is not a table but 5", ""),
    ],
)
def test_a_test_that_cannot_be_understood_is_refused(raw: Any, message: str, remedy: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_case(raw, 2)
    assert caught.value.message.startswith(message)
    assert caught.value.remedy.startswith(remedy)
