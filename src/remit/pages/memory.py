"""What was made for a page, kept while what it was made from stays the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

T = TypeVar("T")
KEPT: Final = 16
"""Things kept at once; the one that was asked for longest ago goes first."""


class Memory:
    """A few things by name, each with what it was made from."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[object, Any]] = OrderedDict()

    async def get(self, name: Hashable, source: object, make: Callable[[], Awaitable[T]]) -> T:
        """The thing of this name if it was made from an equal `source`; else it is made now."""
        known = self._kept.get(name)
        if known is None or known[0] != source:
            known = source, await make()
            self._kept[name] = known
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        made: T = known[1]
        return made
