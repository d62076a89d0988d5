"""What a recipe read of the clock and of chance."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import Payload


class TimeRecorded(Payload, frozen=True, kw_only=True):
    """The clock, as the recipe read it: microseconds since the Unix epoch."""

    KIND: ClassVar[str] = "time_recorded"
    step: str
    value: int


class RandomRecorded(Payload, frozen=True, kw_only=True):
    """A random number in [0, 1), as the recipe drew it."""

    KIND: ClassVar[str] = "random_recorded"
    step: str
    value: float


class UuidRecorded(Payload, frozen=True, kw_only=True):
    """A random UUID, as the recipe drew it."""

    KIND: ClassVar[str] = "uuid_recorded"
    step: str
    value: str
