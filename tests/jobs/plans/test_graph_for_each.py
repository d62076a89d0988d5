from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.errors import RunError
from remit.gateway.outcome import refused
from remit.jobs.answers import CallError
from remit.jobs.effects.port import WaitAnswer
from tests.jobs.plans.plan_runs import TIMED_OUT, call, last, ok, ran, world_of
from tests.jobs.plans.scripted_world import Choose


class TestForEach:
    async def test_results_are_in_the_order_of_the_items_whichever_is_faster(self) -> None:
        done = await ran(call("a", [3, 1, 2]), call("b", ["${item}", "${index}"], for_each="${a}"), choose=last)
        assert done.value["b"] == ok([[3, 0], [1, 1], [2, 2]], failures=[])

    async def test_every_item_is_a_branch_of_its_own(self) -> None:
        done = await ran(call("a", ["x", "y"]), call("b", for_each="${a}"))
        assert [effect.step for effect in done.world.effects] == ["1.0.a", "1.1.1.0.b", "1.1.1.1.b"]

    @pytest.mark.parametrize(("given_value", "items"), [([], []), (None, [])])
    async def test_nothing_is_done_for_nothing(self, given_value: Any, items: list[Any]) -> None:
        done = await ran(call("a", given_value), call("b", for_each="${a}"))
        assert done.value["b"] == ok(items, failures=[])

    @pytest.mark.parametrize("choose", [lambda _count: 0, last])
    async def test_only_so_many_are_under_way_at_once(self, choose: Choose) -> None:
        done = await ran(call("a", [*range(10)]), call("b", "${item}", for_each="${a}", concurrency=3), choose=choose)
        assert done.world.most_pending == 3
        assert done.value["b"]["value"] == [*range(10)]

    async def test_sixteen_where_the_plan_does_not_say(self) -> None:
        done = await ran(call("a", [*range(40)]), call("b", for_each="${a}"))
        assert done.world.most_pending == 16

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ([1, 2, 3], "${a} has 3 items; for_each takes a list of at most 2"),
            ("ab", '${a} is the text "ab"'),
            ({}, "${a} is an object"),
        ],
    )
    async def test_what_is_no_list_or_too_long_is_refused(self, value: Any, message: str) -> None:
        with pytest.raises(RunError) as caught:
            await ran(call("a", value), call("b", for_each="${a}", max_items=2))
        assert caught.value.code is Code.PLAN_REFERENCE_UNFIT
        assert f"node b: {message}" in caught.value.message

    async def test_an_item_that_fails_leaves_a_gap_where_the_node_goes_on(self) -> None:
        world = world_of(odd=lambda args: TIMED_OUT if args["n"] % 2 else args["n"])
        done = await ran(
            call("a", [0, 1, 2, 3]),
            {"id": "b", "tool": "t.odd", "args": {"n": "${item}"}, "for_each": "${a}", "on_failure": "continue"},
            world=world,
        )
        assert done.value["b"] == {
            "ok": False,
            "value": [0, None, 2, None],
            "code": "TOOL_TIMEOUT",
            "reason": "2 of 4 items failed; item 1: too slow",
            "failures": [
                {"index": 1, "code": "TOOL_TIMEOUT", "reason": "too slow"},
                {"index": 3, "code": "TOOL_TIMEOUT", "reason": "too slow"},
            ],
        }

    @pytest.mark.parametrize("choose", [lambda _count: 0, last])
    async def test_else_the_first_in_order_is_the_error_and_the_others_still_run(self, choose: Choose) -> None:
        world = world_of(odd=lambda args: refused(Code.TOOL_TIMEOUT, str(args["n"])) if args["n"] % 2 else args["n"])
        node = {"id": "b", "tool": "t.odd", "args": {"n": "${item}"}, "for_each": "${a}", "concurrency": 2}
        with pytest.raises(CallError) as caught:
            await ran(call("a", [*range(6)]), node, world=world, choose=choose)
        assert caught.value.message == "1"
        assert len(world.effects) == 7

    async def test_a_missing_path_names_the_item(self) -> None:
        with pytest.raises(RunError, match=r"node b, item 1: \$\{item.x\} is missing"):
            await ran(call("a", [{"x": 1}, {}]), call("b", "${item.x}", for_each="${a}"))

    async def test_people_can_be_asked_about_each_item(self) -> None:
        world = world_of({"human": WaitAnswer(payload={"approved": True, "by": "bo", "reason": ""})})
        done = await ran(
            call("a", ["x", "y"]), {"id": "h", "wait": {"human": "Send ${item}?"}, "for_each": "${a}"}, world=world
        )
        assert done.value["h"]["value"] == [True, True]
