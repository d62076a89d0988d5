"""The decision behind a refusal, in words that stand in journals."""

from __future__ import annotations

import pytest

from remit.codes import Code
from remit.policy.decision import Effect
from remit.policy.verdict import DENIED, effect_of_refusal


def test_refusals_of_policy_have_codes() -> None:
    assert all(Code[name].name == name for name in DENIED)


@pytest.mark.parametrize(
    ("code", "stage", "passed", "effect"),
    [
        ("POLICY_DENIED", "authorize", "allow", "deny"),
        ("UNTRUSTED_ARGUMENT", "check_origins", "ask", "deny"),
        ("UNKNOWN_TOOL", "", "allow", "deny"),
        ("POLICY_DENIED", "confirm", "ask", None),
        ("RATE_LIMITED", "take_turn", "allow", "allow"),
        ("RATE_LIMITED", "take_turn", "ask", "ask"),
        ("INVALID_TOOL_ARGS", "check_args", "allow", None),
    ],
)
def test_what_policy_had_decided_follows_from_code_and_stage(
    code: str, stage: str, passed: Effect, effect: Effect | None
) -> None:
    assert effect_of_refusal(code, stage, passed, model_call=False) == effect


def test_policy_was_not_asked_about_the_turn_of_a_model() -> None:
    assert effect_of_refusal("RATE_LIMITED", "take_turn", "allow", model_call=True) is None
