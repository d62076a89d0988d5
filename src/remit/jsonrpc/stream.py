"""A stream of bytes, cut into lines or server-sent events: linear in its length, whatever the chunks, within a cap."""

from __future__ import annotations

from typing import Final

import msgspec

_NEWLINE: Final = b"\n"


class LineTooLongError(Exception):
    """A line grew beyond the cap; what comes after it on this stream has no meaning any more."""


class LineReader:
    """Gives back whole lines as bytes come in.

    Pieces of an unfinished line are kept apart and joined once: a line of 50 MB that comes in 800 pieces is copied
    twice, not 800 times.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their ends. Raises LineTooLongError."""
        first, *rest = data.split(_NEWLINE)
        self._hold(first)
        if not rest:
            return []
        lines = [b"".join(self._pieces), *rest[:-1]]
        if max(map(len, lines)) > self._max_bytes:
            raise self.too_long()
        self._pieces, self._size = [], 0
        self._hold(rest[-1])
        return lines

    def too_long(self) -> LineTooLongError:
        """Return what there is to say about a message beyond the cap."""
        return LineTooLongError(f"a message is longer than {self._max_bytes} bytes")

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > self._max_bytes:
                raise self.too_long()


_DIGITS: Final = 9


class SentEventText(msgspec.Struct, frozen=True):
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
