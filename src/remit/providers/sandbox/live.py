"""Passes a program's output on as it comes, line by line, to whoever watches the call."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Final, Literal

_LONGEST: Final = 400
"""Characters of a line that are passed on; a line without an end is passed on in pieces."""


class Live:
    """A listener that reports whole lines as progress."""

    def __init__(self, progress: Callable[[float, float | None, str], None]) -> None:
        self._progress = progress
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._count = 0
        self._rest = {"stdout": "", "stderr": ""}

    def __call__(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        """Take output."""
        text = self._rest[stream] + self._decoders[stream].decode(data)
        *lines, rest = text.split("\n")
        while len(rest) > _LONGEST:
            lines.append(rest[:_LONGEST])
            rest = rest[_LONGEST:]
        self._rest[stream] = rest
        for line in lines[-100:]:
            self._count += 1
            self._progress(self._count, None, line[:_LONGEST])
