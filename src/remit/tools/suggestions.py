"""What someone may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from remit.nearest import did_you_mean

MAX_LISTED: Final = 12


def suggestion(name: str, known: Iterable[str]) -> str:
    """A remedy for a name that is not known."""
    return did_you_mean(name.lower(), known, most=3) or "`remit tools` lists the tools."


def listed(names: Iterable[str]) -> str:
    """Some names as text, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return ", ".join(every[:MAX_LISTED]) + more
