"""Walks a folder that a program filled as it pleased: by descriptors, so that no path in it leads anywhere else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

DEPTH: Final = 64
ENTRIES: Final = 20_000
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def shown(path: str) -> str:
    """A path as it is recorded: bytes that are not UTF-8 as a backslash, x and two digits."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class FolderEntry(NamedTuple):
    """Something in the folder."""

    path: str
    """Relative, with `/` between folders; what is not UTF-8 in it is escaped as surrogates."""
    parent: int
    """Descriptor of the folder it lies in, open while the entry is looked at."""
    name: str
    info: os.stat_result

    @property
    def is_file(self) -> bool:
        """Return whether it is a regular file."""
        return stat.S_ISREG(self.info.st_mode)

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return stat.S_ISDIR(self.info.st_mode)

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link."""
        return stat.S_ISLNK(self.info.st_mode)

    def open(self) -> int:
        """A descriptor of the file, if it still is the one that was seen. Raises OSError."""
        fd = os.open(self.name, _FILE, dir_fd=self.parent)
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != (self.info.st_dev, self.info.st_ino) or not stat.S_ISREG(info.st_mode):
            os.close(fd)
            raise OSError(f"{self.path} was exchanged")
        return fd


class TooManyError(Exception):
    """There is more in the folder than is looked at."""


def walk(folder: Path) -> Iterator[FolderEntry]:
    """Everything below a folder, sorted by name, folders before what they hold.

    Raises TooManyError after ENTRIES entries, or below DEPTH folders. Folders that cannot be read are passed over.
    """
    fd = os.open(folder, _FOLDER)
    try:
        yield from _walk(fd, "", 0, [0])
    finally:
        os.close(fd)


def _walk(fd: int, above: str, depth: int, seen: list[int]) -> Iterator[FolderEntry]:
    if depth > DEPTH:
        raise TooManyError(f"folders are nested more than {DEPTH} deep")
    for name in sorted(os.listdir(fd)):
        seen[0] += 1
        if seen[0] > ENTRIES:
            raise TooManyError(f"there are more than {ENTRIES} files and folders")
        with suppress(FileNotFoundError):
            entry = FolderEntry(above + name, fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False))
            yield entry
            if entry.is_folder:
                yield from _below(entry, depth, seen)


def _below(entry: FolderEntry, depth: int, seen: list[int]) -> Iterator[FolderEntry]:
    try:
        fd = os.open(entry.name, _FOLDER, dir_fd=entry.parent)
    except OSError:  # closed to us, or no folder any more
        return
    try:
        yield from _walk(fd, entry.path + "/", depth + 1, seen)
    finally:
        os.close(fd)
