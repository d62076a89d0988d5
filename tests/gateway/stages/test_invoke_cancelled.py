"""A call that is cancelled: by its caller, and by the tool itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.journal.kinds import ToolInvocationFinished
from remit.tools.meta import Level
from remit.tools.provider import ToolResult
from tests.gateway.samples import ALLOW
from tests.gateway.stages.test_invoke import hang, raises
from tests.gateway.world import odd, opened


async def cancelled(world: Any, started: asyncio.Event) -> None:
    task = asyncio.create_task(world.call())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_passes_through_and_leaves_the_call_without_an_outcome() -> None:
    started = asyncio.Event()

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        started.set()
        await asyncio.Event().wait()
        return ToolResult(None)

    async with opened(odd(behave, Level.L1), rules=[ALLOW]) as world:
        await cancelled(world, started)
        assert await world.kinds() == ["tool_invocation_started"]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_tool_that_cancels_its_own_task_ends_its_call_alone(*, waits: bool) -> None:
    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if waits:
            await asyncio.Event().wait()
        return ToolResult("done")

    async with opened(odd(behave)) as world:
        outcome = await world.call()
        assert (outcome.code, outcome.value) == ((Code.TOOL_UNAVAILABLE, None) if waits else (None, "done"))
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # noqa: TID251 - gives way once, so that nothing arrives late


async def test_a_cancellation_by_the_caller_counts_beside_the_tools_own() -> None:
    started = asyncio.Event()

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            started.set()
        await asyncio.Event().wait()
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        await cancelled(world, started)


async def test_a_provider_cannot_turn_a_cancellation_into_something_else() -> None:
    started = asyncio.Event()

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise ProviderError("never mind") from error
        return ToolResult(None)

    async with opened(odd(behave)) as world:
        await cancelled(world, started)
        assert await world.kinds() == ["tool_invocation_started"]


@pytest.mark.parametrize("leaves", [True, False])
async def test_an_answer_despite_cancellation_is_recorded_and_the_caller_cancelled_all_the_same(leaves: bool) -> None:
    started = asyncio.Event()

    async def behave(_args: Any, _ctx: Any) -> ToolResult:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ToolResult("done")
        return ToolResult(None)

    async with opened(odd(behave)) as world:

        async def caller() -> None:
            await world.call(leaves=leaves)
            await asyncio.Event().wait()

        task = asyncio.create_task(caller())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await world.value(await world.last(ToolInvocationFinished), "result") == "done"


async def test_a_cancellation_before_the_provider_begins_is_not_the_providers() -> None:
    async with opened(odd(hang)) as world:
        await world.catalog.tools()

        async def caller() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await world.call()

        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(caller())
        assert await world.kinds() == ["tool_invocation_started"]


async def test_an_interrupt_from_the_keyboard_is_not_the_tools() -> None:
    async with opened(odd(raises(KeyboardInterrupt()))) as world:
        with pytest.raises(KeyboardInterrupt):
            await by_hand(world.call())


async def by_hand(coroutine: Any) -> None:
    """Drive a coroutine to its end; a task of its own would hand the interrupt to the event loop."""
    while True:
        try:
            future = coroutine.send(None)
        except StopIteration:
            return
        if future is not None:
            future._asyncio_future_blocking = False
            await future
