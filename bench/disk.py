"""A disk whose flushes are counted and take at least so long: an SQLite file layer over the real one."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import apsw

_names = count()
_TIMER_SLACK = 29
"""Linux: how far a wait of this thread may overshoot so that wake-ups can be gathered; 50 µs unless set."""


class Disk(apsw.VFS):
    """Passes everything on; a flush lasts `delay_us` microseconds, or as long as the real one where that is longer."""

    def __init__(self, delay_us: float = 0.0) -> None:
        """Becomes what SQLite uses where no file layer is named, so that floors and Remit run on the same disk."""
        self.delay_s = delay_us / 1e6
        self.flushes = 0
        """Of write-ahead logs."""
        self._exact = threading.local()
        self.below = apsw.vfs_names()[0]
        """What SQLite used until now."""
        super().__init__(f"bench-disk-{next(_names)}", self.below, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _File:  # noqa: N802 - SQLite's name
        """Open a file of this disk."""
        return _File(self, name, flags)

    def wait(self, began: float) -> None:
        """Let a flush that began at `began` take its time."""
        if sys.platform == "linux" and not hasattr(self._exact, "set"):
            self._exact.set = ctypes.CDLL(None).prctl(_TIMER_SLACK, 1, 0, 0, 0)
        left = self.delay_s - (time.perf_counter() - began)
        if left > 0:
            time.sleep(left)  # noqa: TID251 - this is the disk


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(disk.below, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._log = path.endswith("-wal")
        self._disk = disk

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Flush, count, wait."""
        began = time.perf_counter()
        super().xSync(flags)
        self._disk.flushes += self._log
        self._disk.wait(began)


@contextmanager
def inserted(delay_us: float = 0.0) -> Iterator[Disk]:
    """Put the disk under everything that SQLite opens meanwhile."""
    disk = Disk(delay_us)
    try:
        yield disk
    finally:
        disk.unregister()
