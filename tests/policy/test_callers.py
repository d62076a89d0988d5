import pytest

from remit.errors import PolicyError
from remit.policy.condition import caller_matcher
from remit.policy.decision import Caller
from tests.policy.samples import ALICE, caller, job, rule


@pytest.mark.parametrize(
    ("pattern", "who", "expected"),
    [
        ("alice", ALICE, True),
        ("alice", job("triage"), True),
        ("alice", caller("http", "bob"), False),
        ("al*", ALICE, True),
        ("*", caller("mcp", "anybody"), True),
        ("principal:svc:1", caller("http", "svc:1"), True),
        ("job:triage", job("triage", "bob"), True),
        ("job:triage", job("other"), False),
        ("job:triage", caller("session", "triage"), False),
        ("job:tri*", job("triage"), True),
        ("job:triage/bob", job("triage", "bob"), True),
        ("job:triage/bob", job("triage", "alice"), False),
        ("job:*", job("triage"), True),
        ("job:*", ALICE, False),
        ("session:*", ALICE, True),
        ("session:alice", ALICE, True),
        ("session:bob", ALICE, False),
        ("http:*", caller("http", "bob"), True),
        ("http:*", caller("mcp", "bob"), False),
        ("http:team/*", caller("http", "team/bob"), True),
        ("ticket:bob", caller("ticket", "bob"), True),
    ],
)
def test_a_caller_pattern(pattern: str, who: Caller, expected: bool) -> None:
    assert caller_matcher([pattern])(who) is expected


def test_one_of_several_patterns_is_enough() -> None:
    matches = caller_matcher(["bob", "session:alice"])
    assert matches(ALICE)
    assert not matches(caller("http", "carol"))


def test_no_patterns_are_everybody() -> None:
    assert caller_matcher([])(ALICE)


def test_a_principal_that_is_called_like_a_pattern_is_not_that_caller() -> None:
    assert not caller_matcher(["job:triage"])(caller("session", "job:triage"))


def test_an_unknown_kind_is_refused_with_a_suggestion() -> None:
    with pytest.raises(PolicyError, match=r'rule 1, key "callers" holds .jobs:x.') as caught:
        rule(callers=["jobs:x"])
    assert caught.value.remedy == 'Did you mean "job"?'


@pytest.mark.parametrize("pattern", ["job:", "session:", "job:triage/"])
def test_a_kind_without_a_name_is_refused(pattern: str) -> None:
    with pytest.raises(PolicyError, match="names no caller"):
        rule(callers=[pattern])
