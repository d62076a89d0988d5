"""The last bytes of an output, however long it is."""

from __future__ import annotations

from collections import deque


class Tail:
    """Keeps at most `cap` bytes: the last ones."""

    def __init__(self, cap: int) -> None:
        """Keep `cap` bytes, which is positive."""
        self._cap = cap
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self.size = 0
        """Bytes that came in all."""

    def feed(self, data: bytes) -> None:
        """Take what came next. The cost depends on `data` alone."""
        self.size += len(data)
        piece = data[-self._cap :]
        if not piece:
            return
        self._pieces.append(piece)
        self._kept += len(piece)
        while self._kept - len(self._pieces[0]) >= self._cap:
            self._kept -= len(self._pieces.popleft())

    @property
    def data(self) -> bytes:
        """The last `cap` bytes."""
        return b"".join(self._pieces)[-self._cap :]

    @property
    def truncated(self) -> bool:
        """Whether earlier bytes were dropped."""
        return self.size > self._cap
