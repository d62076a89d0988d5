"""Budgets of tools, jobs and calls."""

from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.errors import UsageError
from remit.tools.budget import ToolBudget, parse_budget, tighter
from remit.tools.provider import ToolResult
from remit.tools.tool import admit
from tests.gateway.world import meta, odd


def test_a_budget_is_read_from_its_table() -> None:
    assert parse_budget(None) is None
    assert parse_budget({"max_steps": 3, "max_wall_ms": 100}) == ToolBudget(max_steps=3, max_wall_ms=100)


@pytest.mark.parametrize(
    "raw", [{"max_steps": 0}, {"max_calls": -1}, {"max_wall_ms": 1.5}, {"max_steps": True}, {"x": 1}, 5]
)
def test_what_is_no_budget_is_refused(raw: Any) -> None:
    with pytest.raises(UsageError) as error:
        parse_budget(raw)
    assert error.value.code is Code.INVALID_BUDGET


def test_of_two_budgets_the_smaller_of_each_limit_counts() -> None:
    one, other = ToolBudget(max_steps=3, max_calls=2), ToolBudget(max_steps=5, max_wall_ms=100)
    assert tighter(one, other) == tighter(other, one) == ToolBudget(max_steps=3, max_calls=2, max_wall_ms=100)
    assert tighter(one, None) == tighter(None, one) == one
    assert tighter(None, None) is None


def test_a_tool_whose_budget_is_none_is_withheld_with_the_reason() -> None:
    tool = admit(meta(budget={"max_calls": 0}), odd(lambda _a, _c: ToolResult(None)), closed=True)
    assert tool.quarantined is not None
    assert "max_calls" in tool.quarantined
