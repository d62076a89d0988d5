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
SKEW: Final = 300 * SECOND
"""Microseconds by which clocks of machines may differ: what was recorded later than this from now is not believed."""
_TEN_MS: Final = 10_000
_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600
_DAY_S: Final = 86_400


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
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


def isoformat(micros: int) -> str:
    """An instant as RFC 3339 in UTC with milliseconds, as every face shows it."""
    return datetime.fromtimestamp(micros / SECOND, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def instant(text: str) -> int | None:
    """Microseconds since the Unix epoch from a time of ISO 8601 with its offset; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else round(moment.timestamp() * SECOND)


def duration(micros: int) -> str:
    """A length of time, as short as it can be said."""
    if micros < SECOND:
        return f"{micros / 1000:.{0 if micros >= _TEN_MS else 1}f} ms"
    seconds = micros / SECOND
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S} h"


def age(micros: int) -> str:
    """A length of time in its largest unit."""
    seconds = max(0, micros) // SECOND
    units = ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min"), (1, "s"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= size), (1, "s"))
    return f"{seconds // size} {unit}"
