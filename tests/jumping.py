"""A clock whose time of day is set by somebody, forwards and backwards, as people and time servers do."""

from __future__ import annotations

import asyncio

import pytest

from remit.clock import DAY, SECOND, Clock, SystemClock


class JumpingClock:
    """Another clock, but for the time of day: how long things take is not touched by setting it."""

    def __init__(self, inner: Clock, ahead_s: float = 0.0) -> None:
        self._inner = inner
        self._ahead = int(ahead_s * SECOND)

    def jump(self, seconds: float) -> None:
        """Set the time of day so far ahead, or back."""
        self._ahead += int(seconds * SECOND)

    def now(self) -> int:
        """Microseconds since the Unix epoch, as the clock is set."""
        return self._inner.now() + self._ahead

    def monotonic(self) -> float:
        """Seconds since some fixed point."""
        return self._inner.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return once so much time has passed."""
        await self._inner.sleep(seconds)


def clock_at(moment: int) -> JumpingClock:
    """The machine's clock, set to a moment."""
    clock = SystemClock()
    return JumpingClock(clock, (moment - clock.now()) / SECOND)


def clock_at_noon() -> JumpingClock:
    """The machine's clock, set to noon in UTC: what is counted by the day meets no end of one."""
    now = SystemClock().now()
    return clock_at(now - now % DAY + DAY // 2)


def leap(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the running loop's time ahead: what was to happen by then happens next, and nobody waits for it."""
    loop = asyncio.get_running_loop()
    time = loop.time
    patch.setattr(loop, "time", lambda: time() + seconds)
