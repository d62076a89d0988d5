"""Putting a file in the place of another: whole or not at all, whatever fails on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def replace_file(place: Path, data: bytes | Iterable[bytes], *, mode: int = 0o600) -> None:
    """Write these bytes to a file, or make it; durable when this returns. Raises OSError, and all is as it was."""
    whole = written_beside(place, data, mode=mode)
    try:
        rename(whole, place)
    except BaseException:
        whole.unlink(missing_ok=True)
        raise


def rename(whole: Path, place: Path) -> None:
    """Give a file, whose bytes are on the disk, the name of another in its folder; durable when this returns."""
    whole.replace(place)
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def clear_place(place: Path) -> None:
    """Take away whatever stands at a path, a folder with all in it too; links are not followed. Raises OSError."""
    if place.is_dir() and not place.is_symlink():
        import shutil  # noqa: PLC0415 - few processes need it, and every start would pay for it

        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def written_beside(place: Path, data: bytes | Iterable[bytes], *, mode: int = 0o600) -> Path:
    """A new file with these bytes in the folder of another, on the disk. Raises OSError, and leaves no file then."""
    name = place.parent / f".{place.name}.{os.urandom(4).hex()}"
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.writelines((data,) if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
    return name
