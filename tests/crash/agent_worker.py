"""A process that sees one agent through: started, and killed, by test_agents.py."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from remit import CallContext, Options, Remit, tool
from remit.parts.agents.recipes import agent
from remit.settings import load


@tool("ledger.add", level="L1", idempotent=True)
async def add(turn: int, number: int, ctx: CallContext) -> str:
    """Book something once for each idempotency key, as a payment service would."""
    booked = Path(sys.argv[1]) / "ledger" / f"{turn}-{number}-{ctx.idempotency_key[:16]}"
    booked.touch(exist_ok=True)
    return f"booked {turn}/{number}"


async def main(folder: Path, url: str, model: str, job: str) -> None:
    """Start the job, or go on with it; end when it has ended."""
    rules = [{"effect": "allow", "tools": ["ledger.*"]}]
    flags = {"journal.url": url, "jobs.lease_seconds": 1, "policy.rules": rules}
    settings = load(cwd=folder, file=None, env={}, flags=flags)
    async with Remit(settings=settings, tools=[add]) as remit:
        if await remit.runtime.journal.head(f"job/{job}") is None:
            given = agent(task="Book it all.", tools=["ledger.*"], model=model, turns=1_000)
            _ = await remit.start(given, Options(job=job))
        await remit.job(job).result()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:5]))
