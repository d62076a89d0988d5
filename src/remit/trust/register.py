"""Where it is kept what someone trusted: a folder of the user's own, outside any project.

One file for each settings file and each journal, named by a digest of its path. An entry counts only if the file and
its folder belong to this user and no one else may write there.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

from remit.atomic import replace_file


class TrustedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file that someone trusted."""

    file: str
    owner: int
    """The uid that it belonged to."""
    digests: dict[str, str]
    """SHA-256 of it and of what it names, by path."""
    edits: bool = False
    """Whether later contents are trusted too."""
    at: int
    """When, in microseconds since 1970."""


class TrustedJournal(msgspec.Struct, frozen=True, kw_only=True):
    """A journal that Remit made here, or that someone trusted."""

    journal: str
    device: int
    inode: int


T = TypeVar("T", TrustedFile, TrustedJournal)


class Register:
    """The trusted files, by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, path: Path) -> TrustedFile | None:
        """Return what is kept of a settings file."""
        found = self._read(self._place("file", path), TrustedFile)
        return found if found is not None and found.file == str(path) else None

    def journal(self, path: Path) -> TrustedJournal | None:
        """Return what is kept of a journal."""
        found = self._read(self._place("journal", path), TrustedJournal)
        return found if found is not None and found.journal == str(path) else None

    def files(self) -> list[TrustedFile]:
        """Every settings file that is trusted, by path."""
        found = [self._read(place, TrustedFile) for place in sorted(self.folder.glob("file-*.json"))]
        return sorted((one for one in found if one is not None), key=lambda one: one.file)

    def keep(self, one: TrustedFile | TrustedJournal) -> None:
        """Keep an entry, in place of any other for the same path. Raises OSError."""
        kind, path = ("file", one.file) if isinstance(one, TrustedFile) else ("journal", one.journal)
        place = self._place(kind, Path(path))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(place, msgspec.json.encode(one))

    def forget(self, path: Path) -> bool:
        """Drop what is kept of a settings file; whether there was something. Raises OSError."""
        place = self._place("file", path)
        there = place.exists()
        place.unlink(missing_ok=True)
        return there

    def _place(self, kind: str, path: Path) -> Path:
        return self.folder / f"{kind}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:40]}.json"

    def _read(self, place: Path, form: type[T]) -> T | None:
        try:
            if not (_ours(self.folder) and _ours(place)):
                return None
            return msgspec.json.decode(place.read_bytes(), type=form)
        except (OSError, msgspec.DecodeError):
            return None


def _ours(path: Path) -> bool:
    found = path.lstat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
