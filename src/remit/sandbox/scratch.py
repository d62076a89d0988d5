"""Empty folders for one run, which go with it; those of a process that was killed go when the next one begins."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from remit.clock import SECOND, SystemClock
from remit.sandbox.identity import identity
from remit.sandbox.workspaces import delete

_PREFIX: Final = "remit-sandbox-"
_FRESH: Final = 60 * SECOND
"""A folder that was made just now may not be locked yet."""


class Scratch:
    """A folder that the sandbox's user owns, in one that only we change; the lock on that one tells that we live."""

    def __init__(self, folder: Path | None = None) -> None:
        """Make it below `folder`; None: where temporary files lie."""
        _swept(folder or Path(tempfile.gettempdir()))
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
        self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.work = self._folder / "work"
        self.work.mkdir(0o700)
        self._folder.chmod(0o711)
        identity().own(self.work)

    def beside(self, name: str) -> Path:
        """An empty folder beside `work`, which the sandbox's user can read."""
        place = self._folder / name.lstrip("/")
        place.mkdir(0o755, exist_ok=True)
        return place

    def close(self) -> None:
        """Delete it, with whatever a program left in it."""
        if self._fd >= 0:
            with suppress(FileNotFoundError):
                delete(self._folder)
            os.close(self._fd)
            self._fd = -1


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder that the sandbox's user owns; deleted afterwards."""
    made = Scratch()
    try:
        yield made.work
    finally:
        made.close()


@cache
def _swept(where: Path) -> None:
    """Delete what processes of ours that were killed left behind there, once."""
    before = SystemClock().now() - _FRESH
    for folder in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.stat().st_mtime_ns < before * 1_000:
                _sweep(folder)


def _sweep(folder: Path) -> None:
    """Delete a folder whose maker is dead. Raises OSError for one that is in use, or not ours."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid == os.geteuid():
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            delete(folder)
    finally:
        os.close(fd)
