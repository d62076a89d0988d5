"""A disk that counts its flushes, can be made to fail, and knows what a loss of power would leave of it.

An SQLite file layer over the real one.
"""

from __future__ import annotations

import collections
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw

_names = count()
SECTOR = 512
"""Bytes that a disk writes whole or not at all."""


class Disk(apsw.VFS):
    """Passes everything on, unless it is full or broken."""

    def __init__(self) -> None:
        self.name = f"disk-{next(_names)}"
        self.syncs: collections.Counter[str] = collections.Counter()
        """Flushes by what follows the last hyphen of the file's name: `wal`, or empty for the database."""
        self.flushed: dict[str, bytes] = {}
        """What each file held when it was last flushed."""
        self.loose: dict[str, list[tuple[int, bytes]]] = collections.defaultdict(list)
        """What was written to each file since."""
        self.failing: dict[str, type[apsw.Error]] = {}
        """What fails, and how: `read`, `write` or `sync`."""
        self.watching: Callable[[], None] | None = None
        """Called right before and right after each flush of the log, on the thread that flushes."""
        self._changing = threading.RLock()
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> DiskFile:  # noqa: N802 - SQLite's name
        """Open a file of this disk."""
        return DiskFile(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's name
        """Delete a file; the log's first flush makes that last, since it flushes the folder too."""
        with self._changing:
            super().xDelete(name, syncdir)
            self.flushed.pop(name, None)
            self.loose.pop(name, None)

    def lose_power(self, folder: Path, chance: random.Random) -> None:
        """Put into a folder what would be left: all that was flushed, and any sectors of what was not, in any order."""
        with self._changing:
            for path in self.flushed.keys() | self.loose.keys():
                content = bytearray(self.flushed.get(path, b""))
                for offset, data in self.loose[path]:
                    for start, sector in _survivors(offset, data, chance):
                        content.extend(bytes(max(0, start + len(sector) - len(content))))
                        content[start : start + len(sector)] = sector
                (folder / Path(path).name).write_bytes(content)

    def fail(self, operation: str) -> None:
        """Raise, where the operation fails at the moment."""
        if operation in self.failing:
            raise self.failing[operation]("the disk is broken")

    def flush(self, path: str) -> None:
        """The file's content is safe from now on."""
        with self._changing:
            self.flushed[path] = Path(path).read_bytes()
            self.loose[path].clear()

    def write(self, path: str, offset: int, data: bytes) -> None:
        """Something was written that is not safe yet."""
        with self._changing:
            self.loose[path].append((offset, data))


def _survivors(offset: int, data: bytes, chance: random.Random) -> list[tuple[int, bytes]]:
    """What is left of one write: all of it, nothing, or some of its sectors."""
    fate = chance.random()
    if fate < 0.7:
        return [(offset, data)] if fate < 0.35 else []
    places = range(offset - offset % SECTOR, offset + len(data), SECTOR)
    kept = [(max(offset, place), min(offset + len(data), place + SECTOR)) for place in places if chance.random() < 0.5]
    return [(start, data[start - offset : end - offset]) for start, end in kept]


class DiskFile(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._part = "wal" if self._path.endswith("-wal") else ""
        self._disk = disk

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Count, and flush."""
        self._disk.syncs[self._part] += 1
        self._disk.fail("sync")
        self._watched()
        super().xSync(flags)
        self._disk.flush(self._path)
        self._watched()

    def _watched(self) -> None:
        if self._part and self._disk.watching is not None:
            self._disk.watching()

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        """Read, while the disk can."""
        self._disk.fail("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write, while there is room."""
        self._disk.fail("write")
        super().xWrite(data, offset)
        self._disk.write(self._path, offset, bytes(data))


@contextmanager
def inserted() -> Iterator[Disk]:
    """A disk that SQLite can be told to use by its name."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.unregister()
