"""Passes a program's output on as it comes, line by line, to anyone who watches the call."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Final, Literal

_LONGEST: Final = 4_000
"""Characters that are passed on at once; a longer line, or one without an end, is passed on in pieces."""


class Live:
    """A listener that reports whole lines as progress: all of them, and at the end what has no line end."""

    def __init__(self, progress: Callable[[float, float | None, str], None]) -> None:
        self._progress = progress
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._count = 0
        self._rest = {"stdout": "", "stderr": ""}

    def __call__(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        """Take output."""
        self._take(stream, self._decoders[stream].decode(data))

    def end(self) -> None:
        """Pass on what is left; nothing comes after it."""
        for stream, decoder in self._decoders.items():
            self._take(stream, decoder.decode(b"", final=True))
            if rest := self._rest[stream]:
                self._say(rest)
            self._rest[stream] = ""

    def _take(self, stream: str, text: str) -> None:
        *lines, rest = (self._rest[stream] + text).split("\n")
        for line in lines:
            self._say(line)
        while len(rest) > _LONGEST:
            self._say(rest[:_LONGEST])
            rest = rest[_LONGEST:]
        self._rest[stream] = rest

    def _say(self, line: str) -> None:
        for start in range(0, len(line) or 1, _LONGEST):
            self._count += 1
            self._progress(self._count, None, OutputLine(line[start : start + _LONGEST]))


class OutputLine(str):
    """A progress report that is a line of a program's output: shown after the lines before it, not in their place."""

    __slots__ = ()
