"""Two bookings, a failure, and both bookings cancelled again."""

import asyncio

from remit import JobEndedError, Remit, Run, recipe, tool

BOOKED: list[str] = []


@tool("trip.book", level="L1")
async def book(what: str) -> dict[str, str]:
    """Book a part of a trip."""
    BOOKED.append(what)
    return {"booking": f"b-{what}"}


@tool("trip.cancel", level="L1")
async def cancel(booking: str) -> str:
    """Cancel a booking."""
    BOOKED.remove(booking.removeprefix("b-"))
    return f"cancelled {booking}"


@recipe("trip")
async def trip(run: Run) -> None:
    """Each booking says how it is undone: as a call, or as a function that makes one from the booking's value."""
    await run.call("trip.book", {"what": "hotel"}, undo=("trip.cancel", {"booking": "b-hotel"}))
    await run.call("trip.book", {"what": "flight"}, undo=lambda made: ("trip.cancel", {"booking": made["booking"]}))
    raise LookupError("no car is left")


async def main() -> None:
    """Approve every call, those that undo too, and look at how the job ended."""
    async with Remit(":memory:", tools=[book, cancel], recipes=[trip]) as remit:
        job = await remit.start(trip())
        async for question in remit.questions(job.id):
            await remit.service.confirmations.decide(
                question.confirmation, "approve", digest=question.digest, by="grace"
            )
        try:
            await job
        except JobEndedError as error:
            print(error)
        for step in (await job.view()).steps:
            print(step.step, step.name, step.state, step.undone)
        print("still booked:", BOOKED)


if __name__ == "__main__":
    asyncio.run(main())
