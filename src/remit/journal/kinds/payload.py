"""What every event's payload is made of."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from remit.codes import named
from remit.journal.blobs import BlobRef

UNSET: Final = msgspec.UNSET
OptionalRaw = msgspec.Raw | msgspec.UnsetType
OptionalRef = BlobRef | msgspec.UnsetType


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event says; KIND is the event's kind."""

    KIND: ClassVar[str] = ""


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something did not end well."""

    code: str
    message: str = ""
    remedy: str = ""
    cause: str = ""
    retryable: bool = False
    step: str = ""
    frames: tuple[str, ...] = ()
    """Where the exception came from, as `file:line in function`, the outermost first."""

    @property
    def words(self) -> str:
        """Code and message, in one line for people."""
        return f"{named(self.code, self.cause)}: {self.message}"
