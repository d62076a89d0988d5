"""A disk that counts its flushes, can be made to fail, and knows what a loss of power would leave of it.

An SQLite file layer over the real one.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw

_names = count()


class Disk(apsw.VFS):
    """Passes everything on, unless it is full or broken."""

    def __init__(self) -> None:
        self.name = f"disk-{next(_names)}"
        self.syncs: collections.Counter[str] = collections.Counter()
        """Flushes by what follows the last hyphen of the file's name: `wal`, or empty for the database."""
        self.full = False
        self.broken = False
        self.flushed: dict[str, bytes] = {}
        """What each file held when it was last flushed."""
        self.loose: dict[str, list[tuple[int, bytes]]] = collections.defaultdict(list)
        """What was written to each file since."""
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> DiskFile:  # noqa: N802 - SQLite's name
        """Open a file of this disk."""
        return DiskFile(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's name
        """Delete a file; the log's first flush makes that last, since it flushes the folder too."""
        super().xDelete(name, syncdir)
        self.flushed.pop(name, None)
        self.loose.pop(name, None)

    def lose_power(self, folder: Path, chance: random.Random) -> None:
        """Put into a folder what would be left: all that was flushed, and any part of what was not."""
        for path in self.flushed.keys() | self.loose.keys():
            content = bytearray(self.flushed.get(path, b""))
            for offset, data in self.loose[path]:
                if chance.random() < 0.5:
                    content.extend(bytes(max(0, offset + len(data) - len(content))))
                    content[offset : offset + len(data)] = data
            (folder / Path(path).name).write_bytes(content)


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
        if self._disk.broken:
            raise apsw.IOError("the disk is broken")
        super().xSync(flags)
        self._disk.flushed[self._path] = Path(self._path).read_bytes()
        self._disk.loose[self._path].clear()

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write, while there is room."""
        if self._disk.full:
            raise apsw.FullError("the disk is full")
        super().xWrite(data, offset)
        self._disk.loose[self._path].append((offset, bytes(data)))


@contextmanager
def inserted() -> Iterator[Disk]:
    """A disk that SQLite can be told to use by its name."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.unregister()
