from typing import Any

import pytest
from hypothesis import given
from msgspec import structs, to_builtins

from remit.canonical import digest
from remit.errors import PolicyError
from remit.policy.approval import Remembered, parse_remembered
from remit.policy.decision import Query
from remit.policy.rules import Policy
from tests.policy.samples import COMMENT, WRITE, caller, job, query
from tests.policy.test_rules import POLICIES, QUERIES

CONTRACT = digest({"contract": 1})
ARGS = {"path": "docs/a", "content": "x"}


def remembered(**changes: Any) -> Remembered:
    said: dict[str, Any] = {
        "id": "app_1",
        "tool": "fs.write",
        "provider_id": "builtin",
        "contract_hash": CONTRACT,
        "args_digest": digest(ARGS),
        "scope": "job",
        "stream": "job/J",
        "principal": "alice",
        "made_by": ("bob",),
        "made_at": 1_000,
        "expires_at": 2_000,
    }
    return Remembered(**(said | changes))


def call(**changes: Any) -> Query:
    asked = query(WRITE, job("triage"), now=1_500, **ARGS)
    return structs.replace(asked, **({"contract_hash": CONTRACT} | changes))


def test_a_remembered_approval_answers_the_question_and_says_who_gave_it() -> None:
    decision = Policy().decide(call(), [remembered()])
    assert (decision.effect, decision.rule_id) == ("allow", "remembered:app_1")
    assert decision.reason == "Approved by bob, remembered for this job."


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tool": "fs.edit"}, "it covers fs.edit of builtin"),
        ({"provider_id": "mcp_x"}, "it covers fs.write of mcp_x"),
        ({"contract_hash": digest(2)}, "the tool's contract has changed since"),
        ({"args_digest": digest({})}, "it covers other arguments"),
        ({"stream": "job/K"}, "it covers job/K"),
        ({"stream": "job/"}, "it covers job/"),
        ({"principal": "bob"}, "it covers calls of bob"),
        ({"expires_at": 1_500}, "it has expired"),
        ({"tool_version": "old"}, "the tool's version has changed since"),
        ({"capability_level": 0}, "the tool's level has changed since"),
        ({"prompt_hash": "sha256:old"}, "the tool's description has changed since"),
    ],
)
def test_what_it_does_not_cover_is_asked_again(changes: dict[str, Any], why: str) -> None:
    one = remembered(**changes)
    assert one.unanswered(call(), Policy().decide(call())) == why
    assert Policy().decide(call(), [one]).effect == "ask"


def test_one_that_binds_version_level_and_text_answers_while_they_are_the_same() -> None:
    one = remembered(
        tool_version=WRITE.version, capability_level=int(WRITE.capability_level), prompt_hash="sha256:text"
    )
    assert Policy().decide(call(prompt_hash="sha256:text"), [one]).effect == "allow"
    assert Policy().decide(call(prompt_hash="sha256:other"), [one]).effect == "ask"


def test_one_of_an_older_remit_binds_none_of_them() -> None:
    raw = to_builtins(remembered())
    for name in LATER:
        del raw[name]
    assert Policy().decide(call(prompt_hash="sha256:text"), [parse_remembered(raw)]).effect == "allow"


@pytest.mark.parametrize(
    "changes",
    [
        {"now": 0},
        {"contract_hash": ""},
        {"args": ARGS | {"content": "y"}},
        {"caller": job("triage", stream="job/JJ")},
        {"caller": caller("session", "alice")},
        {"tool": COMMENT},
    ],
)
def test_a_call_that_is_not_certainly_covered_is_asked_about(changes: dict[str, Any]) -> None:
    assert Policy().decide(call(**changes), [remembered()]).effect == "ask"


def test_streams_below_the_job_are_covered() -> None:
    below = job("triage", stream="job/J/child/1")
    assert Policy().decide(call(caller=below), [remembered()]).effect == "allow"


def test_tool_wide_and_everywhere_is_what_it_says() -> None:
    one = remembered(args_digest=None, scope="everything", stream="")
    asked = call(args={"path": "x"}, caller=caller("http", "alice"))
    assert Policy().decide(asked, [one]).reason == "Approved by bob, remembered for everything."


def test_it_never_lifts_a_denial() -> None:
    policy = Policy.parse([{"effect": "deny", "when": {"path": {"glob": "docs/**"}}}])
    assert policy.decide(call(), [remembered()]).effect == "deny"


def test_one_approval_is_not_two() -> None:
    policy = Policy.parse([{"effect": "ask", "approvals": 2}])
    assert policy.decide(call(), [remembered()]).effect == "ask"
    assert policy.decide(call(), [remembered(made_by=("bob", "bob"))]).effect == "ask"
    assert policy.decide(call(), [remembered(made_by=("bob", "alice"))]).effect == "ask"
    assert policy.decide(call(), [remembered(made_by=("bob", "carol"))]).effect == "allow"


def test_only_those_who_may_approve_today_count() -> None:
    policy = Policy.parse([{"effect": "ask", "approvers": ["carol"]}])
    assert policy.decide(call(), [remembered()]).effect == "ask"
    assert policy.decide(call(), [remembered(made_by=("bob", "carol"))]).effect == "allow"


def test_the_first_that_answers_is_named() -> None:
    decision = Policy().decide(call(), [remembered(tool="fs.edit"), remembered(id="app_2"), remembered(id="app_3")])
    assert decision.rule_id == "remembered:app_2"


def test_arguments_without_a_canonical_form_are_denied() -> None:
    asked = call(args={"path": "docs/a", "content": float("nan")})
    assert Policy().decide(asked, [remembered()]).effect == "deny"


@given(POLICIES, QUERIES)
def test_the_widest_approval_turns_a_question_into_an_answer_and_nothing_else(
    raw: list[dict[str, Any]], asked: Query
) -> None:
    policy = Policy.parse(raw)
    asked = structs.replace(asked, now=1_500, contract_hash=CONTRACT)
    before = policy.decide(asked)
    tool = asked.tool
    assert tool is not None
    widest = remembered(
        tool=tool.name,
        provider_id=tool.provider_id,
        args_digest=None,
        scope="everything",
        stream="",
        principal=asked.caller.principal,
        made_by=("alice", "bob", "carol"),
    )
    after = policy.decide(asked, [widest])
    assert after == (widest.decision if before.effect == "ask" else before)


def test_the_recorded_form_comes_back() -> None:
    assert parse_remembered(to_builtins(remembered())) == remembered()


LATER = {"tool_version", "capability_level", "prompt_hash"}
"""What older journals do not hold."""


@pytest.mark.parametrize("field", sorted(set(Remembered.__struct_fields__) - LATER))
def test_nothing_may_be_left_out(field: str) -> None:
    raw = to_builtins(remembered())
    del raw[field]
    with pytest.raises(PolicyError, match=f"missing required field `{field}`"):
        parse_remembered(raw)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ""},
        {"tool": ""},
        {"principal": ""},
        {"made_by": []},
        {"contract_hash": ""},
        {"args_digest": ""},
        {"scope": "always"},
        {"scope": "everything"},
        {"stream": ""},
        {"expires_at": 1_000},
        {"expires_at": None},
        {"made_by": "bob"},
    ],
)
def test_what_would_cover_more_than_anybody_meant_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="remembered approval"):
        parse_remembered(to_builtins(remembered()) | changes)


def test_an_unknown_key_is_refused_with_a_suggestion() -> None:
    with pytest.raises(PolicyError, match='key "scopes" is not known') as caught:
        parse_remembered(to_builtins(remembered()) | {"scopes": "job"})
    assert caught.value.remedy == 'Did you mean "scope"?'
