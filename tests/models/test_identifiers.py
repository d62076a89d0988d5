from __future__ import annotations

from remit.models.arguments import wire_ids
from remit.models.message import Message, ToolCall


def _said(producer: str, *calls: tuple[str, str]) -> Message:
    return Message("assistant", tuple(ToolCall(ours, "t", "{}", theirs) for ours, theirs in calls), producer)


def test_a_provider_gets_its_own_identifiers_back() -> None:
    assert wire_ids([_said("openai/a", ("1-0", "call_x"))], "openai") == {"1-0": "call_x"}


def test_identifiers_that_repeat_are_missing_or_belong_to_another_provider_are_replaced() -> None:
    messages = [_said("openai/a", ("1-0", "call_1")), _said("openai/a", ("2-0", "call_1"), ("2-1", ""))]
    found = wire_ids([*messages, _said("google/b", ("3-0", "own"))], "openai")
    assert len(set(found.values())) == 4
    assert not {"call_1", "", "own"} & set(found.values())


def test_a_replacement_is_nine_letters_and_digits_and_stays_the_same() -> None:
    messages = [_said("x/y", ("4.2-0", "a b c"))]
    (found,) = wire_ids(messages, "openai").values()
    assert len(found) == 9
    assert found.isalnum()
    assert wire_ids(messages, "anthropic") == {"4.2-0": found}
