"""Remit inside a program: settings from Python, a job with options, an answer, and the errors that can come."""

import asyncio
import os

from remit import CallError, Code, JobEndedError, Options, Outcome, Remit, RemitError, Run, Settings, recipe, tool
from remit.settings import load

STOCK = {"apples": 3}


@tool("stock.take", level="L1")
def take(item: str, count: int) -> int:
    """Take items out of the stock, and return how many are left."""
    STOCK[item] -= count
    return STOCK[item]


@recipe("pack")
async def pack(run: Run, item: str, count: int) -> str:
    """Take what an order needs."""
    if item not in STOCK:
        raise LookupError(f"no {item}")
    try:
        left = await run.call(take, item=item, count=count)
    except CallError as refused:
        return f"not packed: {refused.outcome.reason}"
    return f"{left} left"


def settings(journal: str) -> Settings:
    """Settings of this program alone: no file is read, and no variable but those of `env`."""
    flags = {"journal.url": journal, "jobs.concurrency": 8, "confirm.expires_seconds": 600}
    return load(env={"HOME": os.environ.get("HOME", "")}, search=False, flags=flags)


async def answer(remit: Remit, job: str) -> None:
    """Approve what is small and deny the rest, as a person would in an application of yours."""
    async for question in remit.questions(job):
        verdict = "approve" if question.args["count"] < 3 else "deny"
        await remit.service.confirmations.decide(
            question.confirmation, verdict, digest=question.digest, by="grace", reason=f"{verdict} by size"
        )


async def main() -> None:
    """Pack two orders, call a tool outside any job, and meet an error."""
    async with Remit(settings=settings(":memory:"), tools=[take], recipes=[pack]) as remit:
        for count in (2, 5):
            job = await remit.start(pack("apples", count), Options(title=f"{count} apples", labels={"shop": "north"}))
            async with asyncio.TaskGroup() as group:
                group.create_task(answer(remit, job.id))
                print(await job)
        rows = await remit.jobs("completed")
        print([row.title for row in rows])
        outcome: Outcome = await remit.call("stock.take", {"item": "apples", "count": 1})
        print(outcome.status, outcome.code is Code.CONFIRMATION_REQUIRED)
        try:
            await remit.run(pack("pears", 1))
        except JobEndedError as failure:
            print(failure.code.name, failure.message)
        try:
            await remit.job("job_unknown")
        except RemitError as error:
            print(error.code.name)


if __name__ == "__main__":
    asyncio.run(main())
