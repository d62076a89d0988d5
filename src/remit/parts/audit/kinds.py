"""The events of audit: who read what, and who sends spans. All of these are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from remit.journal.kinds.payload import Payload


class OutputRead(Payload, frozen=True, kw_only=True):
    """Ours, in a stream of the process that gave it: someone got what is recorded, before it left."""

    KIND: ClassVar[str] = "output_read"
    face: Literal["http", "page", "command"]
    operation: str
    """The name of the API's operation, the path of the page, or the command."""
    principal: str = ""
    """The reader; empty if the server knows no tokens."""
    names: dict[str, str] = msgspec.field(default_factory=dict)
    """The names in the path, such as that of a `job` or a `digest`."""

    def words(self) -> str:
        return " ".join(filter(None, (self.operation, *self.names.values(), self.principal and f"by {self.principal}")))


class TelemetryBegun(Payload, frozen=True, kw_only=True):
    """Ours, alone in its stream: who holds the lease of this stream sends spans of what ended since."""

    KIND: ClassVar[str] = "telemetry_begun"
