"""A payment whose process is lost in the middle of it: it is unknown whether it happened."""

from __future__ import annotations

import asyncio

from remit import CallContext, Run, recipe, tool
from tests.opened import OpenRemit, until_waiting

ALLOW = [{"effect": "allow", "tools": ["*"]}]
NOW = {"policy.rules": ALLOW, "jobs.drain_seconds": 0}
"""Stops without waiting for calls under way, as a crash does."""


class Crash:
    """A tool that stands still in the middle of its side effect until the process is gone."""

    def __init__(self, *, idempotent: bool) -> None:
        self.calls: list[str] = []
        self.reached = asyncio.Event()
        self.crashing = True

        @tool("bank.charge", level="L1", idempotent=idempotent)
        async def charge(cents: int, ctx: CallContext) -> int:
            self.calls.append(ctx.idempotency_key)
            if self.crashing:
                self.reached.set()
                await asyncio.get_running_loop().create_future()
            return cents

        self.tool = charge


@recipe("pay")
async def pay(run: Run, cents: int) -> int:
    """Read the clock, then charge."""
    await run.now()
    return int((await run.call("bank.charge", {"cents": cents})).value)


async def crash(remit_in: OpenRemit, bank: Crash) -> str:
    """Start a payment and lose the process while the charge is under way; the job."""
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=NOW) as remit:
        job = await remit.start(pay(5))
        await bank.reached.wait()
    bank.crashing = False
    return job.id


async def in_doubt(remit_in: OpenRemit, bank: Crash) -> str:
    """The same, and a worker has found that a person must resolve it."""
    job = await crash(remit_in, bank)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=NOW) as remit:
        await until_waiting(remit, job)
    return job
