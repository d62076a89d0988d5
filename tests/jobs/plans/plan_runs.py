"""Runs of small plans in a scripted world, with tools that give back or fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from remit.codes import Code
from remit.gateway.outcome import refused
from remit.jobs.effects.port import WaitAnswer
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.graph import run_plan
from remit.jobs.recipe import Recipes, recipe
from remit.jobs.run import Run
from tests.jobs.plans.scripted_world import Choose, ScriptedWorld

last: Choose = lambda count: count - 1  # noqa: E731 - as short as what it stands beside

TIMED_OUT = refused(Code.TOOL_TIMEOUT, "too slow")


def echo(args: dict[str, Any]) -> Any:
    return args.get("value")


def fail(_args: dict[str, Any]) -> Any:
    return TIMED_OUT


def call(node_id: str, value: Any = None, **fields: Any) -> dict[str, Any]:
    return {"id": node_id, "tool": "t.echo", "args": {"value": value}, **fields}


def failing(node_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": node_id, "tool": "t.fail", **fields}


@recipe("double", version="1")
async def double(run: Run, number: int) -> int:
    return 2 * number


@recipe("broken", version="1")
async def broken(run: Run) -> None:
    raise KeyError("gone")


@recipe("calls", version="1")
async def calls(run: Run, tool: str) -> Any:
    return (await run.call(tool)).value


RECIPES = Recipes([double, broken, calls])


class Ran:
    """One run of a plan in a scripted world."""

    def __init__(self, world: ScriptedWorld, value: Any) -> None:
        self.world = world
        self.value = value

    @property
    def called(self) -> list[str]:
        return [effect.key for effect in self.world.effects]


def world_of(answers: dict[str, WaitAnswer] | None = None, **tools: Callable[[dict[str, Any]], Any]) -> ScriptedWorld:
    return ScriptedWorld(
        {"t.echo": echo, "t.fail": fail, **{f"t.{name}": tool for name, tool in tools.items()}}, answers
    )


async def ran(
    *nodes: dict[str, Any],
    world: ScriptedWorld | None = None,
    choose: Choose = lambda _count: 0,
    given: dict[str, Any] | None = None,
    recipes: Recipes | None = RECIPES,
    **more: Any,
) -> Ran:
    world = world or world_of()
    plan = read_plan({"version": "taskgraph-v1", "name": "p", "nodes": [*nodes], **more})
    return Ran(world, await world.run(lambda run: run_plan(run, plan, given or {}, recipes), choose))


def ok(value: Any, **more: Any) -> dict[str, Any]:
    return {"ok": True, "value": value, **more}
