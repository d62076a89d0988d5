"""A disk whose flushes are counted: an SQLite file layer over the real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import apsw

_names = count()


class Disk(apsw.VFS):
    """Passes everything on, and counts.

    It becomes what SQLite uses where no file layer is named, so that floors and Remit run on the same disk.
    """

    def __init__(self) -> None:
        self.flushes = 0
        """Of write-ahead logs."""
        self.below = apsw.vfs_names()[0]
        """What SQLite used until now."""
        super().__init__(f"bench-disk-{next(_names)}", self.below, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _File:  # noqa: N802 - SQLite's name
        """Open a file of this disk."""
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(disk.below, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._log = path.endswith("-wal")
        self._disk = disk

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Flush and count."""
        super().xSync(flags)
        self._disk.flushes += self._log


@contextmanager
def inserted() -> Iterator[Disk]:
    """Put the disk under everything that SQLite opens meanwhile."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.unregister()
