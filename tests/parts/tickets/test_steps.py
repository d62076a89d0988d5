"""Where a ticket's steps come from, and the one form they are brought into."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.tickets.steps import MAX_STEPS, StepBudget, ToolStep, found_in, normalised, steps_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_the_new_place_is_read_before_the_old_one() -> None:
    given = {"tool_steps": [{"tool_name": "new"}]}, [{"tool_name": "old"}]
    assert [step.tool_name for step in steps_of(*given)] == ["new"]
    assert found_in(*given) == ([{"tool_name": "new"}], False, False)


def test_the_old_place_is_read_if_the_new_one_is_missing() -> None:
    given: tuple[Any, Any] = {}, [{"tool_name": "old"}]
    assert [step.tool_name for step in steps_of(*given)] == ["old"]
    assert found_in(*given) == ([{"tool_name": "old"}], True, True)


def test_a_ticket_without_steps_has_none() -> None:
    assert steps_of(None) == ()
    assert found_in(None) == ((), True, False)
    assert steps_of({"tool_steps": []}, [{"tool_name": "old"}]) == ()


def test_a_step_of_the_oldest_form_is_named_by_its_server_and_keeps_its_tool_for_the_trace_alone() -> None:
    step = normalised({"server": "github", "tool": "create_issue", "args": {"title": "x"}})
    assert step == ToolStep(tool_name="github", args={"title": "x"}, original_tool="create_issue")
    assert "create_issue" not in repr(step.args)
    assert b'"_original_tool":"create_issue"' in msgspec.json.encode(step)


def test_a_budget_is_read() -> None:
    step = normalised({"tool_name": "a", "budget": {"max_wall_ms": 5, "max_steps": 1}, "save_as": "x"})
    assert step.budget == StepBudget(max_steps=1, max_wall_ms=5)
    assert step.save_as == "x"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("a", Code.INVALID_TOOL_STEP),
        ({}, Code.INVALID_TOOL_STEP),
        ({"tool_name": ""}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "web.search"}, Code.INVALID_TOOL_STEP),
        ({"server": "git.hub", "args": {}}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "a", "args": []}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "a", "extra": 1}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "a", "server": "b"}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "a", "save_as": 1}, Code.INVALID_TOOL_STEP),
        ({"tool_name": "a", "budget": {"max_wall_ms": 0}}, Code.INVALID_BUDGET),
        ({"tool_name": "a", "budget": {"max_steps": "3"}}, Code.INVALID_BUDGET),
        ({"tool_name": "a", "budget": {"max_cost": 3}}, Code.INVALID_BUDGET),
        ({"tool_name": "a", "budget": 5}, Code.INVALID_BUDGET),
    ],
)
def test_a_bad_step_is_refused_with_its_number(step: Any, code: Code) -> None:
    with pytest.raises(UsageError, match="step 1") as caught:
        steps_of({"tool_steps": [{"tool_name": "fine"}, step]})
    assert caught.value.code is code
    assert caught.value.remedy


def test_more_steps_than_allowed_are_refused() -> None:
    with pytest.raises(UsageError, match=str(MAX_STEPS)):
        steps_of({"tool_steps": [{"tool_name": "a"}] * (MAX_STEPS + 1)})


@given(JSON)
def test_any_json_is_a_step_or_a_refusal(value: Any) -> None:
    try:
        name, code = normalised(value).tool_name, None
    except UsageError as error:
        name, code = "refused", error.code
    assert name
    assert "." not in name
    assert code in {None, Code.INVALID_TOOL_STEP, Code.INVALID_BUDGET}


@given(st.from_regex(r"[^.]{1,9}", fullmatch=True), st.dictionaries(st.text(), JSON, max_size=3))
def test_a_normal_step_is_normal_already(name: str, args: dict[str, Any]) -> None:
    step = normalised({"tool_name": name, "args": args})
    assert normalised({"tool_name": step.tool_name, "args": step.args}) == step
