"""The files that pages load: read once, named by their content, so that a browser may keep each forever."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "static"
PATH: Final = "/static"
_TYPES: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "keys.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file that pages load."""

    path: str
    """Where it is served: the path holds a hash of its content."""
    kind: str
    """Its media type."""
    data: bytes


@cache
def asset(name: str) -> Asset:
    """An asset by its name. Raises KeyError for anything else."""
    kind = _TYPES[name]
    data = (FOLDER / name).read_bytes()
    return Asset(f"{PATH}/{hashlib.sha256(data).hexdigest()[:16]}/{name}", kind, data)


def served(path: str) -> Asset | None:
    """The asset at a path; None if there is none."""
    name = path.rpartition("/")[2]
    return found if name in _TYPES and (found := asset(name)).path == path else None
