"""Regular expressions that are compiled when they are first used.

The modules of one command hold hundreds, of which it uses a few.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Regex:
    """A pattern of `re` that is not compiled yet; what was used of it once costs what it costs there."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while it is copied, nothing of it is there yet
            raise AttributeError(name)
        value = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, value)
        return value


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern with the methods and attributes of a compiled one; one that is wrong fails at its first use."""
    return cast("re.Pattern[AnyStr]", _Regex(pattern, flags))
