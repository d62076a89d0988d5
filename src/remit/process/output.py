"""What a program says while it runs."""

from __future__ import annotations


class OutputLine(str):
    """A progress report that is a line of a program's output: shown after the lines before it, not in their place."""

    __slots__ = ()
