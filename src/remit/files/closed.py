"""Files and folders that are closed to tools, whatever folder they lie in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class Closed:
    """Some files, and folders with all that is in them."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._places = tuple(str(path.resolve()).casefold() for path in paths)

    def below(self, folder: Path) -> Closed:
        """Those that lie in a folder, or that it lies in: most folders have none."""
        place, found = str(folder).casefold(), Closed()
        found._places = tuple(one for one in self._places if _within(one, place) or _within(place, one))
        return found

    def __contains__(self, place: str) -> bool:
        """Return whether a path without links is one of them, or lies in one."""
        return bool(self._places) and any(_within(place.casefold(), one) for one in self._places)


def _within(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder.rstrip('/')}/")
