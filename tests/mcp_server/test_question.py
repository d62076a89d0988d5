"""How a question is put to a client, whatever the call holds."""

from __future__ import annotations

from typing import Any

import pytest

from remit.mcp_server.calls import approvable, question_of, said
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
    assert len(question_of(found)["message"]) < 40_000


@pytest.mark.parametrize("decision", [["approve"], {"approve": 1}, None, True, 1, "Approve", ""])
def test_an_answer_of_any_shape_is_no_answer(decision: object) -> None:  # s10/W08
    assert said({"action": "accept", "content": {"decision": decision}}) is None


@pytest.mark.parametrize("answer", [None, [], "approve", {}, {"action": "accept"}, {"action": ["accept"]}])
def test_neither_is_one_without_content(answer: object) -> None:
    assert said(answer) is None


def test_defaults_of_the_tool_are_shown_apart_from_the_arguments() -> None:
    found = asked("x", defaults={"/mode": "all", "/opts/limit": 100})
    shown = question_of(found)["message"]
    arguments, _, defaults = shown.partition("the tool takes its defaults:")
    assert '"content": "x"' in arguments
    assert "limit" not in arguments
    assert '"/mode": "all"' in defaults
    assert '"/opts/limit": 100' in defaults
    assert approvable(found)


@pytest.mark.parametrize("default", ["x" * 4_000, "ghp_" + "a1B2c3D4" * 5])
def test_a_call_whose_defaults_cannot_be_shown_whole_is_not_approved_there(default: str) -> None:
    assert not approvable(asked("x", defaults={"/mode": default}))
