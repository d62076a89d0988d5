"""W3C Trace Context: which trace a request belongs to (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from remit.ids import new_id, span_id, trace_id
from remit.regex import regex

PARENT: Final = "traceparent"
"""The name of the header, and of a client's word for the same."""
_PARENT: Final = regex(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_SIMPLE: Final = "00"
"""The version whose header ends after the flags."""


class TraceContext(NamedTuple):
    """The trace of a request, and the span that serves it."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    named: bool
    """Whether the client named the trace."""
    parent: str = ""
    """The client's own span, if it named one."""

    @classmethod
    def of(cls, traceparent: str) -> Self:
        """The trace that a request's `traceparent` names; a new one if it names none, or not as the standard says."""
        match = _PARENT.fullmatch(traceparent)
        if match is None or (match[1] == _SIMPLE and match[4] is not None):
            return cls(trace_id(new_id("req")), span_id(), named=False)
        return cls(match[2], span_id(), named=True, parent=match[3])

    @property
    def header(self) -> str:
        """The header that names this span to another program, or to the client."""
        return f"{_SIMPLE}-{self.trace_id}-{self.span_id}-01"
