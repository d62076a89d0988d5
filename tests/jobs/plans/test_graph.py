from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import JournalError, NondeterminismError, PlanError, RunError
from remit.jobs.answers import CallError
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.graph import run_plan
from tests.jobs.plans.plan_runs import TIMED_OUT, call, failing, last, ok, ran, world_of
from tests.jobs.plans.plan_strategies import graphs, tool_plan
from tests.jobs.plans.scripted_world import Choose, Effect, ScriptedWorld


class TestOrder:
    @pytest.mark.slow
    @settings(max_examples=60, deadline=None)
    @given(graphs(), st.data())
    async def test_each_node_runs_once_and_after_those_it_needs(
        self, graph: dict[str, list[str]], data: st.DataObject
    ) -> None:
        ended: list[str] = []

        def work(args: dict[str, Any]) -> str:
            node_id: str = args["id"]
            assert args["from"] == graph[node_id]
            ended.append(node_id)
            return node_id

        world = ScriptedWorld({"work.do": work})
        plan = read_plan(tool_plan(graph))
        await world.run(lambda run: run_plan(run, plan, {}), lambda count: data.draw(st.integers(0, count - 1)))
        assert sorted(ended) == sorted(graph)
        assert all(ended.index(other) < ended.index(node_id) for node_id in graph for other in graph[node_id])

    @pytest.mark.slow
    @settings(max_examples=60, deadline=None)
    @given(graphs(), st.data())
    async def test_an_effect_has_the_same_place_whichever_node_is_faster(
        self, graph: dict[str, list[str]], data: st.DataObject
    ) -> None:
        failures = data.draw(st.sets(st.sampled_from([*graph])))
        plan = read_plan(tool_plan(graph))

        async def effects(choose: Choose) -> tuple[list[Effect], str]:
            world = ScriptedWorld({"work.do": lambda args: TIMED_OUT if args["id"] in failures else args["id"]})
            try:
                value = str(await world.run(lambda run: run_plan(run, plan, {}), choose))
            except CallError as error:
                value = error.step
            return sorted(world.effects, key=lambda effect: effect.step), value

        first = await effects(lambda _count: 0)
        assert await effects(lambda count: data.draw(st.integers(0, count - 1))) == first

    async def test_nodes_that_need_nothing_of_each_other_run_together(self) -> None:
        done = await ran(call("a"), call("b"), call("c", after=["a"]))
        assert done.world.most_pending == 2

    async def test_after_waits_without_using_anything(self) -> None:
        done = await ran(call("b", after=["a"]), call("a"))
        assert done.called == ["a", "b"]

    async def test_a_slow_node_holds_up_only_those_that_need_it(self) -> None:
        done = await ran(call("slow"), call("a"), call("b", "${a}"), call("c", "${slow}"), choose=last)
        assert done.called == ["slow", "a", "b", "c"]

    async def test_a_node_is_keyed_by_its_id_in_a_branch_of_its_own(self) -> None:
        done = await ran(call("a"), call("b", "${a}"))
        assert [effect.step for effect in done.world.effects] == ["1.0.a", "1.1.b"]

    async def test_progress_counts_the_nodes_that_are_done(self) -> None:
        done = await ran(call("a"), call("b", "${a}", when="${a}"))
        assert done.world.shown == [("a", 1, 2), ("b", 2, 2)]

    async def test_a_long_chain_runs(self) -> None:
        chain = [call("n0", 1), *(call(f"n{number}", "${n" + str(number - 1) + "}") for number in range(1, 1_000))]
        assert (await ran(*chain, output="${n999}")).value == 1


class TestValues:
    async def test_references_carry_values_and_texts(self) -> None:
        done = await ran(
            call("a", {"list": [1, {"x": True}], "name": "n"}),
            call("b", "${a.value.list}"),
            call("c", "${inputs.folder}/${a.value.name} $${a}"),
            given={"folder": "/docs"},
            inputs={"folder": {"type": "string"}},
            output={"b": "${b}", "c": ["${c}"], "d": 1},
        )
        assert done.value == {"b": [1, {"x": True}], "c": ["/docs/n ${a}"], "d": 1}

    async def test_without_an_output_every_result_is_given(self) -> None:
        done = await ran(call("a", 1), failing("b", on_failure="continue"), call("c", when="${b}"))
        assert done.value == {"a": ok(1), "b": {"ok": False, "code": "TOOL_TIMEOUT", "reason": "too slow"}, "c": None}

    async def test_inputs_that_do_not_fit_are_refused_before_anything_runs(self) -> None:
        world = world_of()
        with pytest.raises(PlanError) as caught:
            await ran(call("a"), world=world, given={"x": 1})
        assert caught.value.code is Code.INVALID_INPUT
        assert world.effects == []

    async def test_a_tool_gets_its_timeout_in_seconds(self) -> None:
        done = await ran(call("a", timeout="1500ms"), call("b", timeout="2s", on_failure="continue"), call("c"))
        assert [effect.timeout_s for effect in done.world.effects] == [1.5, 2.0, None]

    @pytest.mark.parametrize("on_failure", ["fail", "continue"])
    async def test_a_missing_path_is_a_failure_of_the_node_that_uses_it(self, on_failure: str) -> None:
        nodes = [call("a", {"items": []}), call("b", "${a.value.items.0}", on_failure=on_failure)]
        if on_failure == "continue":
            assert (await ran(*nodes)).value["b"]["code"] == "PLAN_REFERENCE_MISSING"
            return
        with pytest.raises(RunError, match=r"node b: .* has 0 items") as caught:
            await ran(*nodes)
        assert caught.value.code is Code.PLAN_REFERENCE_MISSING

    async def test_a_missing_path_in_the_output_fails_the_plan(self) -> None:
        with pytest.raises(RunError, match="output: "):
            await ran(call("a", {}), output="${a.value.x}")


class TestWhen:
    @pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
    async def test_a_node_is_skipped_where_its_condition_is_falsy(self, value: Any) -> None:
        done = await ran(
            call("a", value),
            call("b", when="${a}"),
            call("c", {"b": "${b}", "x": "${b.value.x.y}"}),
            call("d", after=["b"]),
        )
        assert done.called == ["a", "c", "d"]
        assert done.value["b"] is None
        assert done.value["c"] == ok({"b": None, "x": None})

    @pytest.mark.parametrize("value", [True, 1, "no", [0], {"a": 0}])
    async def test_it_runs_otherwise(self, value: Any) -> None:
        assert (await ran(call("a", value), call("b", when="${a}"))).called == ["a", "b"]

    async def test_a_condition_can_ask_whether_a_node_went_well(self) -> None:
        done = await ran(
            failing("a", on_failure="continue"), call("b", when="${a.ok}"), call("c", "${a.code}", when="${a.code}")
        )
        assert done.called == ["a", "c"]
        assert done.value["c"] == ok("TOOL_TIMEOUT")

    async def test_a_skipped_for_each_does_nothing(self) -> None:
        done = await ran(call("a", [1]), call("b", for_each="${a}", when="${a.code}"))
        assert done.called == ["a"]


class TestFailures:
    async def test_a_node_that_goes_on_gives_its_code_and_reason(self) -> None:
        done = await ran(failing("a", on_failure="continue"), call("b", "${a.code}: ${a.reason}"), call("c", "${a}"))
        assert done.value["b"] == ok("TOOL_TIMEOUT: too slow")
        assert done.value["c"] == ok(None)

    async def test_what_needs_a_failed_node_does_not_run_and_what_does_not_still_does(self) -> None:
        world = world_of()
        nodes = [failing("a"), call("b", "${a}"), call("c", after=["b"]), call("d"), call("e", "${d}")]
        with pytest.raises(CallError) as caught:
            await ran(*nodes, world=world)
        assert caught.value.code is Code.TOOL_TIMEOUT
        assert sorted(effect.key for effect in world.effects) == ["a", "d", "e"]

    @pytest.mark.parametrize("choose", [lambda _count: 0, last])
    async def test_the_first_in_the_file_is_the_error_whichever_failed_first(self, choose: Choose) -> None:
        with pytest.raises(CallError) as caught:
            await ran(call("ok"), failing("a"), failing("b", on_failure="continue"), failing("c"), choose=choose)
        assert caught.value.step == "1.1.a"

    @pytest.mark.parametrize("error", [NondeterminismError("1", "a", "b"), JournalError("gone")])
    async def test_what_ends_the_run_is_no_failure_of_a_node(self, error: Exception) -> None:
        world = world_of(odd=lambda _args: error)
        with pytest.raises(type(error)):
            await ran({"id": "a", "tool": "t.odd", "on_failure": "continue"}, call("b", "${a}"), world=world)

    async def test_and_it_comes_before_the_failures_of_nodes(self) -> None:
        world = world_of(odd=lambda _args: NondeterminismError("1", "a", "b"))
        with pytest.raises(NondeterminismError):
            await ran(failing("a"), {"id": "b", "tool": "t.odd"}, world=world)

    async def test_nor_in_a_for_each(self) -> None:
        world = world_of(odd=lambda _args: NondeterminismError("1", "a", "b"))
        with pytest.raises(NondeterminismError):
            await ran(
                call("a", [1, 2]),
                {"id": "b", "tool": "t.odd", "for_each": "${a}", "on_failure": "continue"},
                world=world,
            )
