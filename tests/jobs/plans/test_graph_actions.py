from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.errors import RunError, VersionError
from remit.jobs.effects.port import WaitAnswer
from remit.jobs.recipe import Recipes
from tests.jobs.plans.plan_runs import RECIPES, call, ok, ran, world_of


class TestWaits:
    async def test_a_timer_waits_so_long(self) -> None:
        done = await ran({"id": "a", "wait": {"timer": "1m500ms"}}, call("b", when="${a}"))
        assert [(effect.kind, effect.step, effect.timeout_s) for effect in done.world.effects] == [
            ("timer", "1.0.a", 60.5),
            ("call", "1.1.b", None),
        ]

    async def test_a_signal_gives_its_payload(self) -> None:
        world = world_of({"go": WaitAnswer(payload={"x": 1})})
        done = await ran({"id": "a", "wait": {"signal": "go", "timeout": "1h"}}, call("b", "${a.value.x}"), world=world)
        assert done.value["b"] == ok(1)
        assert world.effects[0].timeout_s == 3_600

    @pytest.mark.parametrize("on_failure", ["fail", "continue"])
    async def test_a_signal_that_does_not_come_is_a_failure(self, on_failure: str) -> None:
        world = world_of({"go": WaitAnswer(timed_out=True)})
        node = {"id": "a", "wait": {"signal": "go", "timeout": "1h"}, "on_failure": on_failure}
        if on_failure == "continue":
            assert (await ran(node, world=world)).value["a"]["code"] == "PLAN_SIGNAL_TIMEOUT"
            return
        with pytest.raises(RunError, match="node a: no signal 'go' within 3600 s") as caught:
            await ran(node, world=world)
        assert caught.value.code is Code.PLAN_SIGNAL_TIMEOUT

    @pytest.mark.parametrize(("approved", "called"), [(True, ["h", "b"]), (False, ["h"])])
    async def test_a_person_decides_what_depends_on_the_answer(self, approved: bool, called: list[str]) -> None:
        world = world_of({"human": WaitAnswer(payload={"approved": approved, "by": "bo", "reason": "because"})})
        done = await ran(
            {"id": "h", "wait": {"human": "Publish?"}}, call("b", "${h.by}: ${h.reason}", when="${h}"), world=world
        )
        assert done.value["h"] == ok(approved, by="bo", reason="because")
        assert done.value["b"] == (ok("bo: because") if approved else None)
        assert [effect.key for effect in world.effects] == called

    async def test_the_question_and_its_details_are_filled_in(self) -> None:
        world = world_of({"human": WaitAnswer(payload={"approved": True})})
        node = {"id": "h", "wait": {"human": "Publish ${a.value.t}?", "details": {"d": "${a}"}, "timeout": "1d"}}
        await ran(call("a", {"t": "x"}), node, world=world)
        asked = world.effects[1]
        assert asked.args == {"question": "Publish x?", "details": {"d": {"t": "x"}}}
        assert asked.timeout_s == 86_400

    async def test_silence_is_no_approval(self) -> None:
        world = world_of({"human": WaitAnswer(timed_out=True)})
        done = await ran({"id": "h", "wait": {"human": "?", "timeout": "1s"}}, call("b", when="${h}"), world=world)
        assert done.value["h"]["value"] is False
        assert done.value["b"] is None


class TestRecipes:
    async def test_a_recipe_runs_as_a_part_of_the_plan(self) -> None:
        done = await ran(call("a", 4), {"id": "b", "recipe": "double", "input": {"number": "${a}"}})
        assert done.value["b"] == ok(8)
        assert done.world.children == ["double"]

    async def test_its_effects_lie_below_the_nodes_place(self) -> None:
        done = await ran({"id": "b", "recipe": "calls", "input": {"tool": "t.echo"}})
        assert [effect.step for effect in done.world.effects] == ["1.0.b.0.1"]

    @pytest.mark.parametrize(
        ("node", "code"),
        [
            ({"recipe": "double", "input": {"number": "four"}}, Code.INVALID_INPUT),
            ({"recipe": "double", "input": {}}, Code.INVALID_INPUT),
            ({"recipe": "broken"}, Code.JOB_FAILED),
            ({"recipe": "calls", "input": {"tool": "t.fail"}}, Code.TOOL_TIMEOUT),
        ],
    )
    @pytest.mark.parametrize("on_failure", ["fail", "continue"])
    async def test_one_that_cannot_run_or_fails_is_a_failure_of_the_node(
        self, node: dict[str, Any], code: Code, on_failure: str
    ) -> None:
        full = {"id": "a", "on_failure": on_failure, **node}
        if on_failure == "continue":
            assert (await ran(full)).value["a"]["code"] == code.name
            return
        with pytest.raises((RunError, Exception)) as caught:
            await ran(full)
        assert getattr(caught.value, "code", None) is code

    @pytest.mark.parametrize("on_failure", ["fail", "continue"])
    @pytest.mark.parametrize(("name", "recipes"), [("doubel", RECIPES), ("double", None)])
    async def test_one_that_is_not_known_here_ends_the_run_for_other_code_to_go_on(
        self, name: str, recipes: Recipes | None, on_failure: str
    ) -> None:
        world = world_of()
        nodes = [{"id": "a", "recipe": name, "on_failure": on_failure}, call("b", "${a.ok}")]
        with pytest.raises(VersionError, match=f"node a: no recipe is named '{name}'") as caught:
            await ran(*nodes, world=world, recipes=recipes)
        assert caught.value.code is Code.UNKNOWN_RECIPE
        assert world.effects == []

    async def test_an_error_of_a_recipes_code_is_named(self) -> None:
        with pytest.raises(RunError, match="node a: the recipe broken raised KeyError: 'gone'"):
            await ran({"id": "a", "recipe": "broken"})
