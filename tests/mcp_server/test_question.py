"""How a question is put to a client, whatever the call holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.mcp_server.question import PersonAnswer, QuestionForm, approvable, reason_in
from remit.record.views import ConfirmationView

HOSTILE = ('{"token":"', '{\\"token\\":\\"', "Bearer ", "\\u0070", "--password ", "[", "ghp_", "://a:b@")


def asked(text: str, **more: Any) -> ConfirmationView:
    return ConfirmationView(
        confirmation="c_1",
        state="pending",
        caller="job/j",
        step="1",
        tool="fs.write",
        question="",
        args={"content": text},
        digest="d",
        contract_hash="",
        principal="alice",
        approvals=1,
        approved_by=(),
        approvers=(),
        rule_id="",
        edited_from="",
        expires_at=None,
        **more,
    )


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_cut_before_it_is_masked(piece: str) -> None:  # s07/F03, s09/R01: a minute and a half before
    found = asked(piece * (13_000_000 // len(piece)))
    assert not approvable(found)
    assert len(QuestionForm.of(found).params["message"]) < 40_000


@pytest.mark.parametrize("decision", [["approve"], {"approve": 1}, None, True, 1, "Approve", ""])
def test_an_answer_of_any_shape_is_no_answer(decision: object) -> None:  # s10/W08
    assert QuestionForm.of(asked("x")).said({"action": "accept", "content": {"decision": decision}}) is None


@pytest.mark.parametrize("answer", [None, [], "approve", {}, {"action": "accept"}, {"action": ["accept"]}])
def test_neither_is_one_without_content(answer: object) -> None:
    assert QuestionForm.of(asked("x")).said(answer) is None


def test_defaults_of_the_tool_are_shown_apart_from_the_arguments() -> None:
    found = asked("x", defaults={"/mode": "all", "/opts/limit": 100})
    shown = QuestionForm.of(found).params["message"]
    arguments, _, defaults = shown.partition("the tool takes its defaults:")
    assert '"content": "x"' in arguments
    assert "limit" not in arguments
    assert '"/mode": "all"' in defaults
    assert '"/opts/limit": 100' in defaults
    assert approvable(found)


@pytest.mark.parametrize("default", ["x" * 4_000, "ghp_" + "a1B2c3D4" * 5])
def test_a_call_whose_defaults_cannot_be_shown_whole_is_not_approved_there(default: str) -> None:
    assert not approvable(asked("x", defaults={"/mode": default}))


@pytest.mark.parametrize(
    ("more", "session", "choices"),
    [
        (
            {"rememberable": True},
            True,
            ["approve", "approve for this session", "approve for 8 hours", "deny"],
        ),
        ({"rememberable": True}, False, ["approve", "approve for 8 hours", "deny"]),
        ({}, True, ["approve", "deny"]),
    ],
    ids=["here", "asked elsewhere", "nothing is remembered"],
)
def test_longer_approvals_are_choices_beside_the_one(more: dict[str, Any], session: bool, choices: list[str]) -> None:
    found = msgspec.structs.replace(asked("x", **more), caller="call/call_1")
    schema = QuestionForm.of(found, session=session).params["requestedSchema"]
    assert list(schema["properties"]) == ["decision"]  # a reason is asked for only after a denial
    assert schema["properties"]["decision"]["enum"] == choices


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ("approve", PersonAnswer("approve")),
        ("approve for this session", PersonAnswer("approve", scope="session")),
        ("approve for 8 hours", PersonAnswer("approve", scope="everything")),
        ("deny", PersonAnswer("deny")),
        ("approve for ever", None),
    ],
)
def test_each_choice_means_what_it_says(decision: str, said: PersonAnswer | None) -> None:
    found = msgspec.structs.replace(asked("x", rememberable=True), caller="call/call_1")
    assert QuestionForm.of(found, session=True).said({"action": "accept", "content": {"decision": decision}}) == said


def test_what_cannot_be_shown_whole_is_approved_for_no_time_either() -> None:
    found = asked("x" * 5_000, rememberable=True)
    form = QuestionForm.of(found, session=True)
    assert list(form.choices) == ["deny"]
    assert form.said({"action": "accept", "content": {"decision": "approve"}}) is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"action": "accept", "content": {"reason": "too loud"}}, "too loud"),
        ({"action": "accept", "content": {"reason": 1}}, ""),
        ({"action": "accept"}, ""),
        ({"action": "cancel"}, ""),
        (None, ""),
    ],
)
def test_a_reason_of_any_shape_is_a_text(answer: object, reason: str) -> None:
    assert reason_in(answer) == reason
