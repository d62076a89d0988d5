"""Passes a program's output on as it comes, line by line and with secrets masked, to anyone who watches the call."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Final, Literal

from remit.redact import PieceMask, mask

_LONGEST: Final = 4_000
"""Characters that are passed on at once; a longer line is passed on in pieces."""
_HELD: Final = 16_000
"""Characters of a line that are kept until its end comes: secrets are masked before a line is cut."""


class LiveLines:
    """A listener that reports whole lines as progress: all of them, and at the end what has no line end.

    `hide` masks what else is secret in a text.
    """

    def __init__(self, progress: Callable[[float, float | None, str], None], hide: Callable[[str], str] = str) -> None:
        self._progress = progress
        self._hide = hide
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._masks = {"stdout": PieceMask(), "stderr": PieceMask()}
        self._count = 0
        self._rest = {"stdout": "", "stderr": ""}

    def __call__(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        self._take(stream, self._decoders[stream].decode(data))

    def end(self) -> None:
        """Pass on what is left; nothing comes after it."""
        for stream, decoder in self._decoders.items():
            self._take(stream, decoder.decode(b"", final=True))
            if rest := self._rest[stream]:
                self._say(stream, rest)
            self._rest[stream] = ""

    def _take(self, stream: str, text: str) -> None:
        *lines, rest = (self._rest[stream] + text).split("\n")
        for line in lines:
            self._say(stream, line)
        while len(rest) > _HELD:
            end = self._cut(rest[:_HELD])
            self._say(stream, rest[:end])
            rest = rest[end:]
        self._rest[stream] = rest

    def _say(self, stream: str, line: str) -> None:
        line = self._masks[stream](self._hide(line))
        for start in range(0, len(line) or 1, _LONGEST):
            self._count += 1
            self._progress(self._count, None, OutputLine(line[start : start + _LONGEST]))

    def _masked(self, text: str) -> str:
        return mask(self._hide(text))

    def _cut(self, text: str) -> int:
        """Return where a text without an end may be cut: where that cuts no secret, if there is such a place."""
        masked, end = self._masked(text), len(text) // 2
        for _ in range(8):
            if self._masked(text[:end]) + self._masked(text[end:]) == masked:
                return end
            end = text.rfind(" ", 0, end) if " " in text[1:end] else end - 100
        return len(text)


class OutputLine(str):
    """A progress report that is a line of a program's output: shown after the lines before it, not in their place."""

    __slots__ = ()
