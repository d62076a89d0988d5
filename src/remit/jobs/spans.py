"""Spans of time and moments as recipes give them: numbers, `timedelta` and `datetime`. Pure."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Final, overload

from remit.clock import SECOND
from remit.errors import UsageError

_LONGEST_S: Final = 10 * 366 * 86_400
"""As in plans (plans/duration.py)."""

Span = float | timedelta
"""Seconds, or a timedelta."""


@overload
def seconds_of(span: Span) -> float: ...


@overload
def seconds_of(span: Span | None) -> float | None: ...


def seconds_of(span: Span | None) -> float | None:
    """Seconds of a span. Raises UsageError for an infinite one, or one of more than ten years."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if seconds is not None and not math.isfinite(seconds):
        raise UsageError(f"{span!r} is not a duration", remedy="Give seconds or a timedelta.")
    if seconds is not None and seconds > _LONGEST_S:
        raise UsageError(f"{span!r} is longer than ten years", remedy="Give seconds or a timedelta, ten years at most.")
    return seconds


@overload
def due(span: Span | datetime, now: int) -> int: ...


@overload
def due(span: Span | datetime | None, now: int) -> int | None: ...


def due(span: Span | datetime | None, now: int) -> int | None:
    """Return when a span that begins now is over, or the moment itself; microseconds since the Unix epoch, `now` too.

    Raises UsageError for a datetime without a time zone: it means another moment on each machine.
    """
    if isinstance(span, datetime):
        if span.utcoffset() is None:
            remedy = "Give it one, such as datetime(2027, 1, 1, tzinfo=UTC)."
            raise UsageError(f"{span!r} has no time zone", remedy=remedy)
        return (span - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    length = seconds_of(span)
    return None if length is None else now + int(max(0.0, length) * SECOND)


def words(span: Span | datetime | None) -> str:
    """Until when something was waited for, for people."""
    return f"by {span.isoformat()}" if isinstance(span, datetime) else f"within {seconds_of(span) or 0:g} s"


class Activity:
    """Counts the branches of a run that do not wait; a job is parked once there are none."""

    def __init__(self, *, halting: bool = False) -> None:
        self.active = 1
        self.ending = False
        """A branch ended or began to wait just now, and what it lets go on has not been told."""
        self.attention = asyncio.Event()
        """Something may have changed for the run as a whole."""
        self.halting = halting
        """No new effect begins; those under way end."""
        self.halted = False
        """A branch stopped on purpose, before a new effect or (always-replay) after one."""

    def block(self) -> None:
        """Record that the running branch waits from now on."""
        self.active -= 1
        if self.active == 0 and not self.ending:
            # The last branch of a gather ends: the one that waits for it goes on within the same round of the loop.
            self.ending = True
            asyncio.get_running_loop().call_soon(self._ended)

    def _ended(self) -> None:
        self.ending = False
        if self.active == 0:
            self.attention.set()

    def unblock(self) -> None:
        """Record that a waiting branch goes on."""
        self.active += 1

    async def halt(self) -> None:
        """Stand still until the execution ends."""
        self.halted = True
        self.block()
        await asyncio.get_running_loop().create_future()
