"""A disk that counts its flushes and can be made to fail: an SQLite file layer over the real one."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

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
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> DiskFile:  # noqa: N802 - SQLite's name
        """Open a file of this disk."""
        return DiskFile(self, name, flags)


class DiskFile(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._part = "wal" if path.endswith("-wal") else ""
        self._disk = disk

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Count, and flush."""
        self._disk.syncs[self._part] += 1
        if self._disk.broken:
            raise apsw.IOError("the disk is broken")
        super().xSync(flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        """Write, while there is room."""
        if self._disk.full:
            raise apsw.FullError("the disk is full")
        super().xWrite(data, offset)


@contextmanager
def inserted() -> Iterator[Disk]:
    """A disk that SQLite can be told to use by its name."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.unregister()
