"""Finds calls that are made again and again without progress."""

from __future__ import annotations

from typing import Final

ALLOWED: Final = 3
"""How often the same call may give the same result before it is not made any more."""
ENOUGH: Final = 3
"""How often a model may insist on such a call before the agent stops."""


class Repeats:
    """Counts calls by name and arguments, and how often each gave the same result in a row."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[str, int]] = {}
        self.insisted = 0
        """How often a call that is not made any more was asked for in a row."""

    def stale(self, name: str, arguments: str) -> bool:
        """Whether this call has given the same result so often that it is not made any more."""
        return self._last.get((name, arguments), ("", 0))[1] >= ALLOWED

    def note(self, name: str, arguments: str, result: str, *, changes: bool) -> None:
        """A call gave this result; one that `changes` something may make any other call give another result."""
        before, times = self._last.get((name, arguments), ("", 0))
        same = times + 1 if before == result else 1
        if changes and same == 1:
            self._last.clear()
        self._last[name, arguments] = (result, same)

    def insist(self, *, stale: bool) -> None:
        """A call was asked for that is `stale`, or one that is not."""
        self.insisted = self.insisted + 1 if stale else 0
