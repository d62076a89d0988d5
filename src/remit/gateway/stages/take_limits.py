"""TakeLimits: the call takes its part of what rules allow so often, or up to a sum, just before it is announced."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from remit.gateway.announcing import decide_again
from remit.gateway.call import Call, Proceed
from remit.gateway.outcome import Outcome
from remit.gateway.takings import LimitUnprovenError

if TYPE_CHECKING:
    from remit.gateway.services import Services


class TakeLimits:
    """Lets no two calls take the last one."""

    def __init__(self, services: Services) -> None:
        self._takings = services.takings
        self._confirmations = services.confirmations

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Take, or set `outrun`: then policy decides again, since the limit is reached now.

        Refuse with the code of what is wrong if what was taken before cannot be proven.
        """
        return self._take(call, proceed) if call.parts else proceed(call)

    async def _take(self, call: Call, proceed: Proceed) -> Outcome:
        try:
            taken = await self._takings.take(call.parts)
        except LimitUnprovenError as error:
            return error.outcome
        if taken:
            return await proceed(call)
        limits = ", ".join(f"{part.taken.rule_id} ({part.limit})" for part in call.parts)
        return decide_again(call, self._confirmations, f"other calls used up the limit: {limits}")
