"""Empty folders for one run, which go with it, or with this process if that is killed."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.identity import identity
from remit.parts.sandbox.leftovers import delete
from remit.parts.sandbox.limits import size_of


class ScratchFolder:
    """A folder that the sandbox's user owns, in one that only we change; the lock on that one tells that we live."""

    def __init__(self, folder: Path | None = None) -> None:
        ours = cleanup_process()
        ours.tell("folder", folder or Path(tempfile.gettempdir()))
        self._folder = Path(tempfile.mkdtemp(prefix=f"{ours.mark}-", dir=folder))
        self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.work = self._folder / "work"
        self.work.mkdir(0o700)
        identity().admit(self._folder)
        identity().own(self.work)

    def beside(self, name: str) -> Path:
        """An empty folder beside `work`, which the sandbox's user can read."""
        place = self._folder / name.lstrip("/")
        place.mkdir(0o755, exist_ok=True)
        return place

    def size(self) -> int:
        return size_of(self.work)[0]

    def close(self) -> None:
        if self._fd >= 0:
            with suppress(FileNotFoundError):
                delete(self._folder)
            os.close(self._fd)
            self._fd = -1


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder that the sandbox's user owns; deleted afterwards."""
    folder = ScratchFolder()
    try:
        yield folder.work
    finally:
        folder.close()
