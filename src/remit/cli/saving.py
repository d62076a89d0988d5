"""Writes files whose names a program chose below a folder of the user's: never anywhere else, never over a link."""

from __future__ import annotations

import os
from pathlib import Path

from remit.errors import UsageError

_OTHER = "Take it with --cat instead, and name the file yourself."


def place_below(folder: Path, name: str, *, force: bool) -> Path:
    """Where a file of that name goes. Raises UsageError for a name that leads elsewhere, or a file that is there."""
    parts = name.split("/")
    if any(part in {"", ".", ".."} or not part.isprintable() for part in parts) or (os.sep != "/" and os.sep in name):
        raise UsageError(f"{name!r} is not a plain relative path", remedy=_OTHER)
    place = folder
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            raise UsageError(f"{place} is a link", remedy=_OTHER)
    place = folder.joinpath(*parts)
    if place.is_symlink() or place.is_dir() or (place.exists() and not force):
        raise UsageError(f"{place} exists", remedy="Choose another folder, or --force to overwrite files.")
    return place


def write(place: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with fresh.open("xb") as file:
            file.write(data)
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)
