"""What the gateway counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit.tools.provider import ToolResult
from tests.gateway.samples import add, write
from tests.gateway.test_schema_gate import numbers
from tests.gateway.world import World, odd, opened

NO = {"id": "no-notes", "effect": "deny", "tools": ["note.*"]}


def counted(world: World) -> dict[tuple[str, ...], float]:
    return numbers(world.services.metrics, "tool_calls_total")


async def test_calls_are_counted_by_tool_provider_and_code() -> None:
    async with opened(add, write, rules=[NO]) as world:
        for step in "12":
            assert (await world.call("math.add", {"a": 1, "b": 2}, step=step)).ok
        await world.call("math_add", {"a": "x"}, step="3")
        await world.call("note.write", {"text": "x"}, step="4")
        assert counted(world) == {
            ("math.add", "local", "ok"): 2,
            ("math.add", "local", "INVALID_TOOL_ARGS"): 1,
            ("note.write", "local", "POLICY_DENIED"): 1,
        }


async def test_a_name_that_means_no_tool_never_becomes_a_label() -> None:
    async with opened(add) as world:
        for number in range(5):
            await world.call(f"made.up_{number}", step=str(number))
        assert counted(world) == {("unknown", "unknown", "UNKNOWN_TOOL"): 5}


async def test_the_time_at_the_provider_is_observed() -> None:
    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        world.clock.advance(0.25)
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        assert (await world.call()).ok
        found = numbers(world.services.metrics, "tool_call_seconds")
        assert found["odd.tool", "odd", "0.1"] == 0
        assert found["odd.tool", "odd", "0.5"] == 1


async def test_a_call_that_its_caller_cancels_is_counted_and_runs_no_more() -> None:
    reached = asyncio.Event()

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        reached.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async with opened(odd(behave)) as world:
        task = asyncio.create_task(world.call())
        await reached.wait()
        assert numbers(world.services.metrics, "tool_calls_running") == {(): 1}
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert numbers(world.services.metrics, "tool_calls_running") == {(): 0}
        assert counted(world) == {("odd.tool", "odd", "CALL_CANCELLED"): 1}
