from __future__ import annotations

from typing import Any

import pytest

from remit.errors import PlanError
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.plan import NODE
from remit.jobs.plans.problem import InvalidPlanError, Marks
from tests.jobs.plans.plan_samples import node, only_problem, plan_with, problems_of


class TestProblems:
    @pytest.mark.parametrize(
        ("fields", "path", "message", "expected"),
        [
            ({"tol": 1}, "nodes[0].tol", "unknown field `tol`", "did you mean `tool`?"),
            ({"after": "m"}, "nodes[0].after", 'found the text "m"', "a list of node ids"),
            ({"after": [1]}, "nodes[0].after[0]", "found the number 1", "a node's id"),
            ({"after": ["m"]}, "nodes[0].after[0]", "unknown node `m`", "the id of a node"),
            ({"id": "N"}, "nodes[0].id", 'found the text "N"', "a lower-case letter"),
            ({"id": "x" * 65}, "nodes[0].id", "found the text", "a lower-case letter"),
            ({"id": "item"}, "nodes[0].id", "`item` has a meaning of its own in references", "another name"),
            ({"tool": "no tool"}, "nodes[0].tool", 'found the text "no tool"', "a tool's name"),
            ({"tool": "${inputs}"}, "nodes[0].tool", "found the text", "a tool's name"),
            ({"recipe": "r"}, "nodes[0].recipe", "found `tool` and `recipe` in one node", "exactly one"),
            ({"input": {}}, "nodes[0].input", "found `input` beside `tool`", "`args`"),
            ({"args": []}, "nodes[0].args", "found a list", "an object"),
            ({"args": {"a": "${"}}, "nodes[0].args.a", "found `${` without its `}`", "a reference such as"),
            ({"args": {"${a}": 1}}, "nodes[0].args.${a}", "found a reference in a key", "in values only"),
            ({"timeout": "ten"}, "nodes[0].timeout", 'found the text "ten"', "a duration such as"),
            ({"timeout": 10}, "nodes[0].timeout", "found the number 10", "a duration such as"),
            ({"for_each": "items"}, "nodes[0].for_each", 'found the text "items"', "one reference and nothing else"),
            ({"for_each": ["a"]}, "nodes[0].for_each", "found a list", "one reference and nothing else"),
            ({"for_each": "all ${inputs}"}, "nodes[0].for_each", "found the text", "one reference and nothing else"),
            ({"for_each": "${"}, "nodes[0].for_each", "found `${` without its `}`", "one reference and nothing else"),
            ({"max_items": 2}, "nodes[0].max_items", "found `max_items` without `for_each`", "both or neither"),
            ({"for_each": "${inputs}", "max_items": 0}, "nodes[0].max_items", "found the number 0", "from 1 to 10000"),
            ({"for_each": "${inputs}", "concurrency": True}, "nodes[0].concurrency", "found true", "from 1 to 1000"),
            ({"when": True}, "nodes[0].when", "found true", "one reference and nothing else"),
            ({"when": "${item}"}, "nodes[0].when", "found ${item} where there is no item", "`for_each`"),
            ({"args": {"a": "${index}"}}, "nodes[0].args.a", "found ${index} where there is no item", "`for_each`"),
            (
                {"for_each": "${inputs}", "args": {"a": "${index.b}"}},
                "nodes[0].args.a",
                "the index is a number",
                "${index}",
            ),
            ({"on_failure": "contine"}, "nodes[0].on_failure", "found the text", "did you mean `continue`?"),
            ({"description": 1}, "nodes[0].description", "found the number 1", "a text"),
            ({"args": {"a": "${m}"}}, "nodes[0].args.a", "unknown node `m` in ${m}", "the id of a node"),
            ({"args": {"a": "${input.b}"}}, "nodes[0].args.a", "unknown node `input`", "did you mean `inputs`?"),
            ({"args": {"a": "${inputs.b}"}}, "nodes[0].args.a", "unknown input `b`", "it under `inputs`"),
        ],
    )
    def test_a_node_is_refused_with_its_place_what_was_found_and_what_was_expected(
        self, fields: dict[str, Any], path: str, message: str, expected: str
    ) -> None:
        found = only_problem(plan_with(node(**fields)))
        assert found[0] == path
        assert message in found[1]
        assert expected in found[2]

    @pytest.mark.parametrize(
        ("wait", "path", "message"),
        [
            ({}, "nodes[0].wait", "found a wait for nothing"),
            ("2s", "nodes[0].wait", 'found the text "2s"'),
            ({"timer": "2s", "human": "?"}, "nodes[0].wait.human", "found `timer` and `human` in one wait"),
            ({"timer": "soon"}, "nodes[0].wait.timer", 'found the text "soon"'),
            ({"timer": "1s", "timeout": "1s"}, "nodes[0].wait.timeout", "found `timeout` beside `timer`"),
            ({"signal": "go", "details": 1}, "nodes[0].wait.details", "found `details` beside `signal`"),
            ({"signal": ""}, "nodes[0].wait.signal", 'found the text ""'),
            ({"human": ""}, "nodes[0].wait.human", "found an empty text"),
            ({"human": "${"}, "nodes[0].wait.human", "found `${` without its `}`"),
            ({"humn": "a?"}, "nodes[0].wait.humn", "unknown field `humn`"),
        ],
    )
    def test_a_wait_is_refused(self, wait: Any, path: str, message: str) -> None:
        found = problems_of(plan_with({"id": "n", "wait": wait}))
        assert (path, message) in [one[:2] for one in found]

    def test_a_node_has_to_do_something(self) -> None:
        assert only_problem(plan_with({"id": "n"}))[:2] == ("nodes[0]", "found a node that does nothing")

    @pytest.mark.parametrize(
        ("more", "path", "message"),
        [
            ({"version": "taskgraph-v2"}, "version", 'found the text "taskgraph-v2"'),
            ({"version": 1}, "version", "found the number 1"),
            ({"name": "Weekly Report"}, "name", 'found the text "Weekly Report"'),
            ({"nodes": []}, "nodes", "found an empty list"),
            ({"nodes": {}}, "nodes", "found an object"),
            ({"nodes": [1]}, "nodes[0]", "found the number 1"),
            ({"nodes": [node(id=f"n{number}") for number in range(2_001)]}, "nodes", "found 2001 nodes"),
            ({"inputs": ["a"]}, "inputs", "found a list"),
            ({"inputs": {"a": "string"}}, "inputs.a", 'found the text "string"'),
            ({"inputs": {"a": {}}}, "inputs.a", "found no `type`"),
            ({"inputs": {"a": {"type": "text"}}}, "inputs.a.type", 'found the text "text"'),
            ({"inputs": {"a b": {"type": "string"}}}, "inputs.a b", "found the name 'a b'"),
            ({"inputs": {"a": {"type": "integer", "default": True}}}, "inputs.a.default", "found true"),
            ({"inputs": {"a": {"type": "string", "default": "${n}"}}}, "inputs.a.default", "found a reference"),
            ({"output": "${m}"}, "output", "unknown node `m` in ${m}"),
            ({"output": {"a": ["${item}"]}}, "output.a[0]", "found ${item} where there is no item"),
            ({"extra": 1}, "extra", "unknown field `extra`"),
        ],
    )
    def test_a_plan_is_refused(self, more: dict[str, Any], path: str, message: str) -> None:
        assert (path, message) in [one[:2] for one in problems_of(plan_with(node()) | more)]

    @pytest.mark.parametrize("document", [None, 1, "plan", [], True])
    def test_what_is_no_object_is_no_plan(self, document: Any) -> None:
        assert only_problem(document)[0] == ""

    @pytest.mark.parametrize("field", ["version", "name", "nodes"])
    def test_a_plan_has_to_have_these_fields(self, field: str) -> None:
        document = plan_with(node())
        del document[field]
        assert only_problem(document) == ("", f"found no `{field}`", f"a field `{field}`")

    @pytest.mark.parametrize("action", ["tool", "recipe"])
    def test_where_names_are_known_another_one_is_refused(self, action: str) -> None:
        document = plan_with({"id": "n", action: "serch"})
        path, message, expected = only_problem(document, **{f"{action}s": ["search", "read"]})
        assert (path, message) == (f"nodes[0].{action}", f"unknown {action} `serch`")
        assert expected.endswith("did you mean `search`?")
        read_plan(document)

    def test_every_problem_is_reported_and_none_that_only_follows_from_another(self) -> None:
        document = plan_with(
            {"id": "a", "tool": "x", "wait": {"timer": "1s"}, "for_each": "none"},
            node(id="b", args={"x": "${a.by} ${a.failures}"}, when="x"),
            node(id="b", after=["c"]),
            name=1,
        )
        assert [path for path, _, _ in problems_of(document)] == [
            "name",
            "nodes[0].for_each",
            "nodes[0].wait",
            "nodes[1].when",
            "nodes[2].id",
            "nodes[2].after[0]",
        ]

    def test_the_message_has_one_line_for_each_problem(self) -> None:
        with pytest.raises(PlanError) as caught:
            read_plan(plan_with(node(tol=1, timeout="x")), file="weekly.yaml")
        fields = ", ".join(NODE["properties"])
        assert caught.value.message.splitlines() == [
            f"weekly.yaml nodes[0].tol: unknown field `tol`, expected one of {fields}; did you mean `tool`?",
            'weekly.yaml nodes[0].timeout: found the text "x", expected a duration such as 500ms, 10s or 1h30m',
        ]

    def test_a_flood_of_problems_is_cut_in_the_message_only(self) -> None:
        with pytest.raises(InvalidPlanError) as caught:
            read_plan(plan_with(*[node(id=f"n{number}", timeout="x") for number in range(60)]))
        assert len(caught.value.problems) == 60
        assert caught.value.message.splitlines()[50:] == ["… and 10 more"]

    def test_what_is_long_or_many_is_cut(self) -> None:
        declared = {f"input_{number}": {"type": "string"} for number in range(30)}
        document = plan_with(node(args={"k" * 500: "${inputs.x}"}), inputs=declared)
        path, _, expected = only_problem(document)
        assert path == f"nodes[0].args.{'k' * 63}…"
        assert expected == f"one of {', '.join(list(declared)[:20])}, …"

    def test_names_that_were_meant_are_looked_for_only_where_they_are_shown(self) -> None:
        found = problems_of(plan_with(*[node(id=f"n{number}", on_failure="contine") for number in range(60)]))
        assert ["did you mean" in expected for _, _, expected in found] == [True] * 50 + [False] * 10

    def test_problems_stand_where_the_marks_say(self) -> None:
        marks = Marks({(): (1, 1), ("nodes", 0): (5, 3)}, {("nodes", 0, "tol"): (6, 3)})
        with pytest.raises(InvalidPlanError) as caught:
            read_plan(plan_with(node(tol=1, timeout="x")), marks=marks)
        assert [(one.line, one.column) for one in caught.value.problems] == [(5, 3), (6, 3)]
