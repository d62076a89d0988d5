from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import PlanError
from remit.jobs.plans.check import read_plan
from tests.jobs.plans.plan_samples import node, only_problem, plan_with, problems_of

anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class TestShape:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (float("nan"), "found the number nan"),
            (float("inf"), "found the number inf"),
            pytest.param(10**4300, "found a whole number of more than 4300 digits", id="long"),
            ("\ud800", "found a text with half of a surrogate pair"),
            (b"x", "found a bytes"),
            ((1,), "found a tuple"),
            ({1: 2}, "found the key 1"),
            ({"\ud800": b""}, "found the key '\\ud800'"),
        ],
    )
    def test_what_has_no_canonical_form_is_refused(self, value: Any, message: str) -> None:
        path, found, _ = only_problem(plan_with(node(args={"a": value})))
        assert (path, found) == ("nodes[0].args.a", message)

    def test_depth_is_bounded(self) -> None:
        def nested(levels: int) -> Any:
            return [nested(levels - 1)] if levels else []

        read_plan(plan_with(node(args={"a": nested(45)})))
        assert "found more than 50 levels" in problems_of(plan_with(node(args={"a": nested(46)})))[0][1]

    def test_a_bottomless_document_is_no_recursion(self) -> None:
        bottomless: list[Any] = []
        bottomless.append(bottomless)
        assert problems_of(bottomless)

    def test_size_is_bounded(self) -> None:
        assert "more than 50,000 values" in problems_of(plan_with(node(args={"a": [0] * 50_000})))[0][1]

    @given(anything)
    def test_any_value_is_a_plan_or_a_plan_error(self, value: Any) -> None:
        with pytest.raises(PlanError):
            read_plan(value)
