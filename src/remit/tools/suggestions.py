"""What someone may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MAX_LISTED: Final = 12
_MAX_LENGTH: Final = 128


def suggestion(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that is not known."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    close = get_close_matches(name[:_MAX_LENGTH].lower(), sorted(set(known)), n=3, cutoff=0.6)
    return f"Did you mean {listed(close, last=' or ')}?" if close else "List what there is with `remit tools`."


def listed(names: Iterable[str], *, last: str = ", ") -> str:
    """Some names as text, and how many more there are."""
    every = list(names)
    shown, more = every[:MAX_LISTED], len(every) - MAX_LISTED
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return last.join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
