"""A payment that begins under one version of its code and its tool, and ends under the next."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from remit import Recipe, Remit, Run, migration, recipe, tool
from remit.settings import load

STARTED = asyncio.Event()


@tool("bank.charge", level="L1", idempotent=True, version="1")
async def charge_euros(euros: int) -> str:
    """Charge euros; in this story the process ends before the bank answers."""
    STARTED.set()
    await asyncio.get_running_loop().create_future()
    return f"{euros} euros"


@tool("bank.charge", level="L1", idempotent=True, version="2")
async def charge_cents(cents: int) -> str:
    """Charge cents."""
    return f"{cents} cents"


@migration("bank.charge", recorded="1")
def in_cents(args: dict[str, Any]) -> dict[str, Any]:
    """A call that was recorded in euros is made again in cents, under the same idempotency key."""
    return {"cents": args["euros"] * 100}


@recipe("pay", version="1")
async def pay(run: Run, euros: int) -> str:
    """Charge."""
    return str((await run.call("bank.charge", {"euros": euros})).value)


@recipe("pay", version="2", migrates=("1",))
async def pay_in_cents(run: Run, euros: int) -> str:
    """Charge as the job began to, then say under which version that was."""
    args = {"euros": euros} if run.version == "1" else {"cents": euros * 100}
    charged = (await run.call("bank.charge", args)).value
    return f"{charged}, begun under version {run.version}"


def opened(folder: str, code: Recipe[..., Any], **more: Any) -> Remit:
    """A process with one version of the code."""
    flags = {
        "journal.url": f"{folder}/jobs.db",
        "jobs.mismatch": "migrate",
        "jobs.drain_seconds": 0,
        "policy.rules": [{"id": "pay", "effect": "allow", "tools": ["bank.charge"]}],
    }
    return Remit(recipes=[code], settings=load(cwd=Path(folder), file=None, env={}, flags=flags), **more)


async def main() -> None:
    """Begin under version 1, stop in the middle of the charge, and go on under version 2."""
    with tempfile.TemporaryDirectory() as folder:
        async with opened(folder, pay, tools=[charge_euros]) as remit:
            job = await remit.start(pay(5))
            await STARTED.wait()
        async with opened(folder, pay_in_cents, tools=[charge_cents], migrations=[in_cents]) as remit:
            print(await remit.job(job.id))


if __name__ == "__main__":
    asyncio.run(main())
