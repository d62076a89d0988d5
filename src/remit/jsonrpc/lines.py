"""Cutting a stream of bytes into lines: linear in its length, whatever the chunks, and within a cap."""

from __future__ import annotations

from typing import Final

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
