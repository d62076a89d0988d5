from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.jobs.plans.check import read_plan
from tests.jobs.plans.plan_samples import node, only_problem, plan_with
from tests.jobs.plans.plan_strategies import graphs, names, tool_plan

whole_plans = settings(max_examples=50, deadline=None)  # drawing a whole plan takes a while


class TestGraph:
    @given(graphs())
    def test_any_graph_without_a_loop_is_valid(self, graph: dict[str, list[str]]) -> None:
        plan = read_plan(tool_plan(graph))
        assert {one.id: set(one.needs) for one in plan.nodes} == {name: set(needs) for name, needs in graph.items()}

    @pytest.mark.slow
    @whole_plans
    @given(graphs(), st.lists(names.map("ring_{}".format), min_size=2, max_size=6, unique=True), st.data())
    def test_a_loop_is_reported_with_exactly_its_members(
        self, graph: dict[str, list[str]], ring: list[str], data: st.DataObject
    ) -> None:
        full = {**graph, **{one: [after] for one, after in zip(ring, [*ring[1:], ring[0]], strict=True)}}
        for name, needs in graph.items():
            full[name] = [*needs, *data.draw(st.lists(st.sampled_from(ring), max_size=1))]
        _, message, _ = only_problem(tool_plan(full))
        members = message.removeprefix("these nodes wait for each other: ").split(" -> ")
        assert members[0] == members[-1] == ring[0]
        assert members[:-1] == ring

    @pytest.mark.parametrize("field", ["after", "when", "for_each", "args"])
    def test_every_kind_of_edge_counts(self, field: str) -> None:
        edge = {"after": ["b"], "when": "${b}", "for_each": "${b}", "args": {"x": ["in ${b.value.y} text"]}}
        path, message, _ = only_problem(plan_with(node(id="a", **{field: edge[field]}), node(id="b", after=["a"])))
        assert (path, message) == ("nodes[0].id", "these nodes wait for each other: a -> b -> a")

    @pytest.mark.parametrize(
        ("fields", "path"),
        [
            ({"after": ["n"]}, "nodes[0].after[0]"),
            ({"when": "${n}"}, "nodes[0].when"),
            ({"args": {"x": "${n.ok}"}}, "nodes[0].args.x"),
        ],
    )
    def test_a_node_cannot_wait_for_itself(self, fields: dict[str, Any], path: str) -> None:
        assert only_problem(plan_with(node(**fields))) == (path, "`n` waits for itself", "another node")

    def test_the_output_may_use_every_node(self) -> None:
        read_plan(plan_with(node(), output="${n}"))


class TestReferences:
    def test_an_id_is_used_once(self) -> None:
        path, message, _ = only_problem(plan_with(node(), node()))
        assert (path, message) == ("nodes[1].id", "`n` is used twice, first in nodes[0]")

    @pytest.mark.parametrize(
        ("reference", "expected"),
        [
            ("${a.items}", "one of ok, value, code, reason; did you mean `${a.value.items}`?"),
            ("${a.valu}", "one of ok, value, code, reason; did you mean `value`?"),
            ("${a.by}", "one of ok, value, code, reason; did you mean `${a.value.by}`?"),
            ("${a.failures}", "one of ok, value, code, reason; did you mean `${a.value.failures}`?"),
        ],
    )
    def test_the_first_step_into_a_result_is_checked(self, reference: str, expected: str) -> None:
        found = only_problem(plan_with(node(id="a"), node(args={"x": reference})))
        assert found[0] == "nodes[1].args.x"
        assert found[2] == expected

    def test_a_person_and_a_for_each_have_more_to_give(self) -> None:
        read_plan(
            plan_with(
                {"id": "h", "wait": {"human": "?"}},
                node(id="f", for_each="${h}"),
                node(args={"x": "${h.by}", "y": "${f.failures.0.index}"}),
            )
        )

    def test_for_many_answers_there_is_no_one_who_gave_them(self) -> None:
        asked = {"id": "h", "wait": {"human": "?"}, "for_each": "${inputs}"}
        _, _, expected = only_problem(plan_with(asked, node(args={"x": "${h.by}"})))
        assert expected.startswith("one of ok, value, code, reason, failures;")

    def test_a_step_into_an_input_that_has_no_parts_is_refused(self) -> None:
        declared = {"a": {"type": "string"}, "b": {"type": "object"}}
        document = plan_with(node(args={"x": "${inputs.a.c}", "y": "${inputs.b.c}"}), inputs=declared)
        assert only_problem(document)[:2] == (
            "nodes[0].args.x",
            "found ${inputs.a.c}, but the input is of the type string",
        )
