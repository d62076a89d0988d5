"""A tool that writes, a recipe that calls it, and what a person has to say about it."""

import asyncio

from remit import Remit, Run, recipe, tool

BOOKS: list[str] = []


@tool("desk.lookup", level="L0")
async def lookup(customer: str) -> dict[str, int]:
    """What a customer has ordered. L0: it only reads, so it runs without a question."""
    return {"orders": len(customer)}


@tool("desk.refund", level="L1", timeout=10)
async def refund(customer: str, cents: int) -> str:
    """Give money back. L1: it changes the world, so a person is asked first, and it never runs twice."""
    BOOKS.append(f"{customer} {cents}")
    return f"refunded {cents} to {customer}"


@recipe("triage", version="1")
async def triage(run: Run, customer: str) -> str:
    """Look a customer up, and offer a refund."""
    found = await run.call("desk.lookup", {"customer": customer})
    outcome = await run.attempt("desk.refund", {"customer": customer, "cents": found.value["orders"] * 100})
    return outcome.value if outcome.ok else f"no refund: {outcome.reason}"


async def main() -> None:
    """Start the job, answer its question as a person would, and look at what was recorded."""
    async with Remit(":memory:", tools=[lookup, refund], recipes=[triage]) as remit:
        job = await remit.start(triage("ada"))
        async for question in remit.questions(job.id):
            print(f"asked: {question.tool} {question.args}")
            await remit.service.confirmations.decide(
                question.confirmation, "approve", digest=question.digest, by="grace"
            )
        print(await job)
        for step in (await job.view()).steps:
            print(step.step, step.name, step.state, step.meta.result_preview)
        print("replay:", (await remit.replay(job.id)).verdict)


if __name__ == "__main__":
    asyncio.run(main())
