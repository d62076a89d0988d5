"""Queue: a synchronous tool waits for its thread before it is announced, so that what never began is never in doubt."""

from __future__ import annotations

import asyncio
import threading

import pytest

from remit import tool
from remit.journal.kinds import ToolInvocationStarted
from remit.providers.functions.provider import FunctionProvider
from remit.threads import Threads
from tests.gateway.samples import ALLOW
from tests.gateway.world import World, opened
from tests.jumping import leap
from tests.patience import PATIENCE_S


class Door:
    """A synchronous tool with side effects that waits until it is let go."""

    def __init__(self) -> None:
        self.entered: list[int] = []
        self.began = threading.Event()
        self.open = threading.Event()

        @tool("door.enter", timeout=PATIENCE_S)
        def enter(number: int) -> int:
            self.entered.append(number)
            self.began.set()
            self.open.wait(PATIENCE_S)
            return number

        self.threads = Threads(1)
        self.provider = FunctionProvider([enter], provider_id="doors", threads=self.threads)

    async def call(self, world: World, number: int) -> asyncio.Task[object]:
        """A call under way, as far as it comes by itself."""
        await world.catalog.tools()
        call = asyncio.ensure_future(world.call("door.enter", {"number": number}, step=str(number)))
        await asyncio.sleep(0)  # noqa: TID251 - lets it begin, and waits for no time
        return call


async def test_a_call_that_waits_for_a_thread_is_not_announced_and_ends_unrecorded_if_it_is_cancelled() -> None:
    door = Door()
    async with opened(door.provider, rules=[ALLOW]) as world:
        first = await door.call(world, 1)
        await asyncio.to_thread(door.began.wait)
        second = await door.call(world, 2)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        door.open.set()
        await first
        assert [one.step for one in await world.recorded() if isinstance(one, ToolInvocationStarted)] == ["1"]
        assert door.entered == [1]


async def test_the_deadline_of_a_call_begins_when_its_thread_does(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()
    async with opened(door.provider, rules=[ALLOW]) as world:
        # Another call has the only thread for longer than the second call may take.
        await door.threads.slots.acquire()
        second = await door.call(world, 2)
        leap(monkeypatch, PATIENCE_S)
        await asyncio.wait([second], timeout=0)
        assert not second.done()
        door.open.set()
        door.threads.slots.release()
        outcome = await world_outcome(second)
        assert outcome == ("ok", 2)


async def world_outcome(call: asyncio.Task[object]) -> tuple[object, object]:
    """Status and value of a call."""
    outcome = await call
    return getattr(outcome, "status", None), getattr(outcome, "value", None)


async def test_calls_begin_in_the_order_they_came() -> None:
    door = Door()
    door.open.set()
    async with opened(door.provider, rules=[ALLOW]) as world:
        await door.threads.slots.acquire()
        calls = [await door.call(world, number) for number in range(1, 9)]
        door.threads.slots.release()
        await asyncio.gather(*calls)
        assert door.entered == list(range(1, 9))


async def test_an_asynchronous_tool_waits_for_no_thread() -> None:
    @tool("door.peep", level="L0")
    async def peep() -> str:
        return "seen"

    threads = Threads(1)
    async with opened(FunctionProvider([peep], provider_id="doors", threads=threads)) as world:
        await threads.slots.acquire()
        assert (await world.call("door.peep")).value == "seen"
