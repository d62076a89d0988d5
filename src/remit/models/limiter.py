"""One limit for each provider, key and model, shared by everything in the process that asks it.

A provider that is busy says so to one caller and means all of them: while it wants to be left alone, no request is
sent. A short while is waited for here; a long one is a fault with its time, so that a job can wait for it without a
worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from remit.models.faults import Busy

if TYPE_CHECKING:
    from remit.clock import Clock

SHORT_S: Final = 3.0
"""Seconds up to which a pause is waited for in place."""


class Limiter:
    """Turns at one model with one key."""

    def __init__(self, clock: Clock, at_once: int) -> None:
        self._clock = clock
        self._turns = asyncio.Semaphore(at_once)
        self._until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One request. Raises Busy if the provider will accept no requests for long."""
        async with self._turns:
            while (rest := self._until - self._clock.monotonic()) > 0:
                if rest > SHORT_S:
                    raise Busy(f"the provider accepts no requests for another {rest:.0f} s", after_s=rest, unsent=True)
                await self._clock.sleep(rest)
            yield

    def pause(self, seconds: float) -> None:
        """Ask nothing more for so many seconds."""
        self._until = max(self._until, self._clock.monotonic() + seconds)
