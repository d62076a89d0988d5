from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import PlanError
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.plan import (
    TASKGRAPH_V1,
    CallTool,
    Human,
    Input,
    Plan,
    Signal,
    Timer,
    bind_inputs,
    plan_hash,
    task_graph,
)
from tests.jobs.plans.plan_samples import node, plan_with, problems_of
from tests.jobs.plans.plan_strategies import documents

whole_plans = settings(max_examples=50, deadline=None)  # drawing a whole plan takes a while
SCHEMA = jsonschema_rs.validator_for(TASKGRAPH_V1)


@pytest.mark.slow
class TestValidPlans:
    @whole_plans
    @given(documents())
    def test_a_plan_survives_being_recorded_and_the_schema_agrees(self, document: dict[str, Any]) -> None:
        plan = read_plan(document)
        recorded = msgspec.json.decode(msgspec.json.encode(task_graph(plan)))
        assert read_plan(recorded) == plan
        assert task_graph(read_plan(recorded)) == recorded
        assert [*SCHEMA.iter_errors(document)] == [*SCHEMA.iter_errors(recorded)] == []

    @whole_plans
    @given(documents(), st.data())
    def test_what_the_schema_refuses_is_a_problem_too(self, document: dict[str, Any], data: st.DataObject) -> None:
        broken = damaged(document, data)
        if not SCHEMA.is_valid(broken):
            assert problems_of(broken)

    @whole_plans
    @given(documents())
    def test_the_hash_does_not_depend_on_how_a_plan_is_written(self, document: dict[str, Any]) -> None:
        shuffled = dict(reversed([*document.items()])) | {"description": document.get("description", "")}
        shuffled["nodes"] = [
            dict(reversed([*one.items()])) | {"after": one.get("after", [])} for one in document["nodes"]
        ]
        assert plan_hash(read_plan(shuffled)) == plan_hash(read_plan(document))

    def test_the_hash_tells_plans_apart(self) -> None:
        hashes = {
            plan_hash(read_plan(plan_with(*nodes, **more)))
            for nodes, more in [
                ([node()], {}),
                ([node(args={"a": 1})], {}),
                ([node(timeout="1s")], {}),
                ([node(on_failure="continue")], {}),
                ([node()], {"output": None}),
                ([node(), node(id="m")], {}),
                ([node(id="m"), node()], {}),
            ]
        }
        assert len(hashes) == 7

    def test_durations_are_the_same_however_they_are_written(self) -> None:
        assert plan_hash(read_plan(plan_with(node(timeout="60s")))) == plan_hash(
            read_plan(plan_with(node(timeout="1m")))
        )

    def test_every_field_arrives(self) -> None:
        plan = read_plan(
            plan_with(
                {"id": "a", "tool": "fs.read", "args": {"path": "x"}, "timeout": "2s", "on_failure": "continue"},
                {"id": "t", "wait": {"timer": "1m"}, "after": ["a"]},
                {"id": "s", "wait": {"signal": "go", "timeout": "1h"}},
                {"id": "h", "wait": {"human": "Publish ${a.value.title}?", "details": "${t}", "timeout": "1d"}},
                {"id": "f", "tool": "fs.read", "for_each": "${a}", "max_items": 5, "concurrency": 2, "when": "${h}"},
                inputs={"n": {"type": "integer", "default": 3, "description": "how many"}},
                output={"x": "${f}"},
            )
        )
        a, t, s, h, f = plan.nodes
        assert (a.action, a.on_failure) == (CallTool(name="fs.read", args={"path": "x"}, timeout_ms=2_000), "continue")
        assert (t.action, t.needs) == (Timer(after_ms=60_000), ("a",))
        assert s.action == Signal(name="go", timeout_ms=3_600_000)
        assert h.action == Human(question="Publish ${a.value.title}?", details="${t}", timeout_ms=86_400_000)
        assert h.needs == ("a", "t")
        assert f.for_each is not None
        assert (f.for_each.max_items, f.for_each.concurrency) == (5, 2)
        assert set(f.needs) == {"a", "h"}
        assert plan.inputs == {"n": Input(type="integer", default=3, description="how many")}
        assert plan.output == {"x": "${f}"}

    def test_no_output_is_not_the_output_null(self) -> None:
        assert read_plan(plan_with(node())).output is msgspec.UNSET
        assert read_plan(plan_with(node(), output=None)).output is None


class TestInputs:
    PLAN = read_plan(
        plan_with(
            node(),
            inputs={
                "folder": {"type": "string"},
                "limit": {"type": "integer", "default": 5},
                "share": {"type": "number", "default": 1},
                "tags": {"type": "array", "default": []},
            },
        )
    )

    def test_defaults_fill_what_is_not_given(self) -> None:
        assert bind_inputs(self.PLAN, {"folder": "a", "limit": 7}) == {
            "folder": "a",
            "limit": 7,
            "share": 1,
            "tags": [],
        }

    def test_every_misfit_is_named(self) -> None:
        with pytest.raises(PlanError) as caught:
            bind_inputs(self.PLAN, {"foldr": "a", "limit": "7", "share": True})
        assert caught.value.code is Code.INVALID_INPUT
        assert caught.value.message.splitlines() == [
            "p inputs.foldr: unknown input, expected one of folder, limit, share, tags; did you mean `folder`?",
            "p inputs.folder: found nothing, expected a text",
            'p inputs.limit: found the text "7", expected a whole number',
            "p inputs.share: found true, expected a number",
        ]

    def test_from_a_command_line_text_is_taken_as_json_writes_it(self) -> None:
        given_as_text = {"folder": "7", "limit": "7", "share": "0.5", "tags": '["a"]'}
        expected = {"folder": "7", "limit": 7, "share": 0.5, "tags": ["a"]}
        assert bind_inputs(self.PLAN, given_as_text, strict=False) == expected

    @pytest.mark.parametrize("text", ["seven", "7.5", "true", '"7"', ""])
    def test_text_that_is_not_of_the_type_is_refused_all_the_same(self, text: str) -> None:
        with pytest.raises(PlanError):
            bind_inputs(self.PLAN, {"folder": "a", "limit": text}, strict=False)

    def test_a_plan_without_inputs_takes_none(self) -> None:
        with pytest.raises(PlanError, match="the plan takes no inputs"):
            bind_inputs(read_plan(plan_with(node())), {"a": 1})


def damaged(document: dict[str, Any], data: st.DataObject) -> Any:
    """The document with one value somewhere replaced, removed or added."""
    broken = copy.deepcopy(document)
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict | list):
            for key in [*value] if isinstance(value, dict) else range(len(value)):
                places.append((value, key))
                collect(value[key])

    collect(broken)
    container, key = data.draw(st.sampled_from(places))
    change = data.draw(st.sampled_from([None, 0, -1, "", "x y", True, [], {}, ["x"], {"x": 1}, "remove", "add"]))
    if change == "remove":
        del container[key]
    elif change == "add" and isinstance(container, dict):
        container["added"] = 1
    else:
        container[key] = change
    return broken


def test_a_plan_is_a_value() -> None:
    plan = read_plan(plan_with(node()))
    with pytest.raises(AttributeError):
        plan.name = "other"  # type: ignore[misc]
    assert isinstance(plan, Plan)
