"""Time, injected (rule 12): everything that reads a clock or waits takes one of these.

Instants are integer microseconds since the Unix epoch (nanoseconds pass 2^53 and break canonical JSON); durations and
deadlines of running calls are seconds on the monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Final, Protocol

SECOND: Final = 1_000_000
"""Microseconds in a second."""
DAY: Final = 86_400 * SECOND


class Clock(Protocol):
    """A source of time."""

    def now(self) -> int:
        """Microseconds since the Unix epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed on this clock."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """Microseconds since the Unix epoch."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds since some fixed point."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed."""
        await asyncio.sleep(max(0.0, seconds))


def isoformat(micros: int) -> str:
    """An instant as RFC 3339 in UTC with milliseconds, as every face shows it."""
    return datetime.fromtimestamp(micros / SECOND, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
