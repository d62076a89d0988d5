from __future__ import annotations

import asyncio

from remit import Run, recipe, tool
from tests.opened import OpenRemit, local_engine
from tests.patience import PATIENCE_S


@tool("news.never", level="L0", timeout=600)
async def never() -> None:
    """Wait until cancelled."""
    await asyncio.Event().wait()


@recipe("listens")
async def listens(run: Run) -> None:
    """Call a tool that never answers."""
    await run.call("news.never", {})


async def test_the_last_of_many_messages_in_a_row_is_not_slept_through(remit_in: OpenRemit) -> None:
    # So long a lease that nothing else would make the engine look again within the time a test has.
    async with remit_in(tools=[never], recipes=[listens], flags={"jobs.lease_seconds": 3_600}) as remit:
        job = await remit.start(listens())
        async for event in remit.service.streams.follow(f"job/{job.id}"):
            if event.kind == "tool_invocation_started":
                break
        for number in range(20):
            await job.signal("noise", number)
        await job.cancel()
        assert (await remit.ended(job.id)).state == "cancelled"


async def test_a_message_between_the_lease_and_the_pass_is_not_slept_through(remit_in: OpenRemit) -> None:
    # Looking for other jobs to work on may take a while, and nobody tells a pass of anything before it is known.
    async with remit_in(tools=[never], recipes=[listens], work=False) as remit:
        engine = local_engine(remit)
        job = await remit.start(listens())
        (lease,) = await engine.claiming.due(1, remit.runtime.journal.clock.now())
        await job.cancel()
        telling = asyncio.create_task(engine.holding._tell())
        await engine.holding.begin(lease)
        async with asyncio.timeout(PATIENCE_S):
            assert (await remit.ended(job.id)).state == "cancelled"
        telling.cancel()
        await asyncio.wait([telling])
