"""Everything a run can do besides calling tools: branches, timers, signals, questions, children, clock and chance."""

import asyncio

from remit import Remit, Run, recipe, tool


@tool("text.count", level="L0")
async def count(text: str) -> int:
    """Count words."""
    return len(text.split())


@recipe("measure")
async def measure(run: Run, texts: list[str]) -> list[int]:
    """Branches run side by side and come back in order; each has places of its own."""
    outcomes = await run.gather(*(run.call("text.count", {"text": text}) for text in texts))
    return [int(outcome.value) for outcome in outcomes]


@recipe("review")
async def review(run: Run, texts: list[str]) -> dict[str, object]:
    """A child recipe, a pause, a signal from outside, and what the clock and the dice said."""
    counts = await run.child(measure(texts))
    run.progress("measured", done=1, total=3)
    await run.sleep(0.01)  # may be days: the job is parked, and no worker is held
    verdict = await run.wait_signal("verdict")
    return {"counts": counts, "verdict": verdict, "at": await run.now(), "sample": await run.random()}


async def main() -> None:
    """Start it and send the signal it waits for."""
    async with Remit(":memory:", tools=[count], recipes=[measure, review]) as remit:
        job = await remit.start(review(["one two", "three"]))
        await job.signal("verdict", {"good": True})
        result = await job
        print(result["counts"], result["verdict"])
        print((await remit.replay(job.id)).verdict)


if __name__ == "__main__":
    asyncio.run(main())
