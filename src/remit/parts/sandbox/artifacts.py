"""Entries of a folder that a run wrote, and its artifacts: regular files only, within limits, and a word on others."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from remit.parts.sandbox.shapes import LeftOut
from remit.process.enclosure import RunLimits

DEPTH: Final = 64
ENTRIES: Final = 20_000
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def shown(path: str) -> str:
    """A path as it is recorded: bytes that are not UTF-8 as a backslash, x and two digits."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class FolderEntry(msgspec.Struct, frozen=True):
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


class SnapshotLostError(Exception):
    """The bytes of a snapshot are not there any more."""


def walk(folder: Path) -> Iterator[FolderEntry]:
    """Everything below a folder, sorted by name, folders before what they hold.

    Raises TooManyError after ENTRIES entries, or below DEPTH folders. Folders that cannot be read are passed over.
    """
    fd = os.open(folder, _FOLDER)
    try:
        yield from _walk(fd, "", 0, [0])
    finally:
        os.close(fd)


def _walk(fd: int, above: str, depth: int, counter: list[int]) -> Iterator[FolderEntry]:
    if depth > DEPTH:
        raise TooManyError(f"folders are nested more than {DEPTH} deep")
    for name in sorted(os.listdir(fd)):
        counter[0] += 1
        if counter[0] > ENTRIES:
            raise TooManyError(f"there are more than {ENTRIES} files and folders")
        with suppress(FileNotFoundError):
            entry = FolderEntry(above + name, fd, name, os.stat(name, dir_fd=fd, follow_symlinks=False))
            yield entry
            if entry.is_folder:
                yield from _below(entry, depth, counter)


def _below(entry: FolderEntry, depth: int, counter: list[int]) -> Iterator[FolderEntry]:
    try:
        fd = os.open(entry.name, _FOLDER, dir_fd=entry.parent)
    except OSError:  # closed to us, or no folder any more
        return
    try:
        yield from _walk(fd, entry.path + "/", depth + 1, counter)
    finally:
        os.close(fd)


_KINDS: Final = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)
_LISTED: Final = 200
"""The bound of the list of what is left out; the rest is counted."""


class TakenFile(msgspec.Struct, frozen=True):
    """A file that was taken."""

    path: str
    """As `walking.shown` writes it."""
    data: bytes
    sha256: str


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken and what was not."""

    artifacts: tuple[TakenFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    more_left_out: int = 0


class _Collector:
    def __init__(self, limits: RunLimits, patterns: tuple[str, ...]) -> None:
        self.limits = limits
        self.patterns = patterns
        self.taken: list[TakenFile] = []
        self.left: list[LeftOut] = []
        self.more = 0
        self.bytes = 0

    def leave(self, path: str, reason: str) -> None:
        if len(self.left) < _LISTED:
            self.left.append(LeftOut(shown(path), reason))
        else:
            self.more += 1

    def wanted(self, path: str) -> bool:
        path = shown(path)
        return not self.patterns or any(path == pattern or fnmatchcase(path, pattern) for pattern in self.patterns)

    def look(self, entry: FolderEntry) -> None:
        reason = _unfit(entry)
        if reason:
            self.leave(entry.path, reason)
        elif len(self.taken) >= self.limits.artifact_files:
            self.leave(entry.path, f"more than {self.limits.artifact_files} files")
        elif self.bytes + entry.info.st_size > self.limits.artifact_bytes:
            self.leave(entry.path, f"more than {self.limits.artifact_bytes} bytes in all")
        else:
            self._take(entry)

    def _take(self, entry: FolderEntry) -> None:
        try:
            data = _read(entry, self.limits.artifact_bytes - self.bytes)
        except OSError as error:
            self.leave(entry.path, f"cannot be read: {error.strerror or error}")
            return
        if data is None:
            self.leave(entry.path, f"more than {self.limits.artifact_bytes} bytes in all")
            return
        self.bytes += len(data)
        self.taken.append(TakenFile(shown(entry.path), data, f"sha256:{hashlib.sha256(data).hexdigest()}"))


def collect(
    folder: Path, limits: RunLimits, patterns: tuple[str, ...] = (), known: Callable[[str], bool] | None = None
) -> Collected:
    """The files below a folder whose paths match a pattern (`*` also matches `/`), all without patterns.

    Paths and patterns are as `walking.shown` writes them.

    `known` names paths to pass over in silence. The program must be dead: what changes meanwhile is left out or cut.
    """
    collector = _Collector(limits, patterns)
    try:
        for entry in walk(folder):
            if not entry.is_folder and collector.wanted(entry.path) and not (known and known(entry.path)):
                collector.look(entry)
    except TooManyError as error:
        collector.leave("", str(error))
    return Collected(artifacts=tuple(collector.taken), left_out=tuple(collector.left), more_left_out=collector.more)


def _unfit(entry: FolderEntry) -> str:
    for is_kind, words in _KINDS:
        if is_kind(entry.info.st_mode):
            return words
    if not entry.is_file:
        return "no regular file"
    return "it has more than one name (hard link)" if entry.info.st_nlink > 1 else ""


def _read(entry: FolderEntry, most: int) -> bytes | None:
    fd = entry.open()
    with open(fd, "rb") as file:  # closes it
        data = file.read(most + 1)
    return data if len(data) <= most else None
