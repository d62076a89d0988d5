"""The parts that every event's payload is made of."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec

from remit.codes import named
from remit.journal.blobs import BlobRef

UNSET: Final = msgspec.UNSET
INNER: Final = "/"
"""Stands in the step of what a program does within a call, after the call's own: `2/1`; no place of a recipe has it."""
OptionalRaw = msgspec.Raw | msgspec.UnsetType
OptionalRef = BlobRef | msgspec.UnsetType
SharedDigest = Annotated[str, msgspec.Meta(extra={"names": "shared"})]
"""Names bytes beside the events that streams share, such as a schema; empty: none."""
PolicyDigest = Annotated[str, msgspec.Meta(extra={"names": "policy"})]
"""Names the text of the rules that decided, which lies beside the events; an older Remit did not keep it."""
TimedDigest = Annotated[str, msgspec.Meta(extra={"names": "timed"})]
"""Names bytes beside the events that streams share and that are kept for a time, such as evidence; empty: none."""
OwnDigest = Annotated[str, msgspec.Meta(extra={"names": "own"})]
"""Names bytes beside the events that belong to the stream; empty: none."""


def holding(kind: Any) -> msgspec.Meta:
    """Say of a value's field that digests stand in the value, and in which type."""
    return msgspec.Meta(extra={"holds": kind})


REFERENCES: Final[dict[str, str]] = {}
"""By kind the reference `"module:name"` of its payload: of each that was imported, and of those that parts declare."""


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What an event says; KIND is the event's kind.

    It holds JSON, which has no circles: the garbage collector need not look at it.
    """

    KIND: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if cls.KIND:  # none of those that only hold what several kinds say
            REFERENCES.setdefault(cls.KIND, f"{cls.__module__}:{cls.__qualname__}")

    def words(self) -> str:
        """Return a line about the event for people; for kinds of parts, since remit.record.teller has the core's."""
        return ""


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
