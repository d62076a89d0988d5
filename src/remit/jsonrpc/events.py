"""Cutting a stream of bytes into server-sent events: linear in its length, whatever the chunks, and within a cap."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.jsonrpc.lines import LineReader

_DIGITS: Final = 9


class SentEventText(NamedTuple):
    """One event."""

    kind: str
    """`message`, unless it says otherwise."""
    data: bytes


class EventReader:
    """Gives back whole events as bytes come in, and keeps where the stream stands (HTML Living Standard, 9.2)."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.last_id = ""
        """The last event's identifier: where a stream that broke off goes on."""
        self.retry_ms: int | None = None
        """The time that the server wants to be left alone before that."""
        self.restart()

    def restart(self) -> None:
        """Begin again: what comes next is the beginning of another stream."""
        self._lines = LineReader(self._max_bytes)
        self._kind = ""
        self._id = self.last_id
        self._data: list[bytes] = []
        self._size = 0
        self._half = False
        self._first = True

    def feed(self, chunk: bytes) -> list[SentEventText]:
        """The events that `chunk` completes. Raises LineTooLongError."""
        if chunk:
            if self._half and chunk.startswith(b"\n"):
                chunk = chunk[1:]  # the second half of an end of line
            self._half = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return [event for line in self._lines.feed(chunk) if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> SentEventText | None:
        if self._first:
            self._first, line = False, line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._end()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._size += len(value) + 1
                if self._size > self._max_bytes:
                    raise self._lines.too_long()
                self._data.append(value)
            case b"event":
                self._kind = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) <= _DIGITS:
                self.retry_ms = int(value)
            case _:
                pass  # a comment, or a field of another day
        return None

    def _end(self) -> SentEventText | None:
        event = SentEventText(self._kind or "message", b"\n".join(self._data)) if self._data else None
        self.last_id = self._id  # not before all of the event is here
        self._kind, self._data, self._size = "", [], 0
        return event
