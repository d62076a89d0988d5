"""The event of the stream whose lease decides who sends spans."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import Payload


class TelemetryBegun(Payload, frozen=True, kw_only=True):
    """Ours, alone in its stream: who holds the lease of this stream sends spans of what ended since."""

    KIND: ClassVar[str] = "telemetry_begun"
