"""Queue: a tool that runs only so often at once is waited for before anything is announced."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome

if TYPE_CHECKING:
    import asyncio

    from remit.gateway.services import Services


class Queue:
    """Lets calls in as there is room, in the order they came."""

    def __init__(self, services: Services) -> None:
        """Nothing of them is needed: the slots are the provider's."""

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Wait for a slot; policy decides again on a call that had to.

        A call that ends here is not announced: it is never in doubt, and no deadline runs yet.
        """
        slots = call.tool.slots
        return proceed(call) if slots is None or call.admitted else _in(slots, call, proceed)


async def _in(slots: asyncio.Semaphore, call: Call, proceed: Proceed) -> Outcome:
    waits = slots.locked()
    async with slots:
        if not waits:
            return await proceed(call)
        call.admitted = True  # what allowed the call may have ended meanwhile; it keeps its place
        try:
            return await call.decide_again()
        finally:
            call.admitted = False
