"""A workspace as it was at a moment: a list of its files by digest, and their bytes beside it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from remit.canonical import digest
from remit.parts.sandbox.artifacts import FolderEntry, SnapshotLostError, walk
from remit.parts.sandbox.identity import identity
from remit.parts.sandbox.workspaces import empty

_CHUNK: Final = 1024 * 1024
_RACY_NS: Final = 100_000_000
"""A file changed so shortly before it was looked at may change again without another time stamp."""


_BYTES: Final = "\0"
"""Begins the text of a name that is not UTF-8: one character for each byte follows."""


def _text(name: str) -> str:
    """A name that JSON can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return _BYTES + os.fsencode(name).decode("latin-1")
    return name


def name_of(text: str) -> str:
    """The name or path that a snapshot holds as `text`."""
    return os.fsdecode(text[1:].encode("latin-1")) if text.startswith(_BYTES) else text


class Saved(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file, folder or symbolic link."""

    kind: str
    """`file`, `folder` or `link`."""
    mode: int = 0
    sha256: str = ""
    target: str = ""
    size: int = 0


class WorkspaceSnapshot(msgspec.Struct, frozen=True):
    """All of a workspace."""

    entries: dict[str, Saved]
    """By the texts of their paths: see `name_of`."""
    unkept: list[str] = []
    """Paths of what is not restored: pipes, sockets, devices, files that are closed to us."""

    @property
    def digest(self) -> str:
        """`sha256:…` over names, modes and contents."""
        return digest(
            {path: [entry.kind, entry.mode, entry.sha256, entry.target] for path, entry in self.entries.items()}
        )


class Snapshots:
    """Takes and restores snapshots of one workspace; a file that did not change is not read again."""

    def __init__(self, objects: Path) -> None:
        self._objects = objects
        self._known: dict[tuple[int, int, int, int, int], str] = {}

    def take(self, work: Path, now_ns: int, *, keep: bool) -> WorkspaceSnapshot:
        """The workspace as it is; `keep`: so that it can be restored. Raises OSError or TooManyError."""
        entries: dict[str, Saved] = {}
        unkept = []
        for entry in walk(work):
            saved = self._saved(entry, now_ns, keep=keep)
            if saved is not None:
                entries[_text(entry.path)] = saved
            else:
                unkept.append(_text(entry.path))
        return WorkspaceSnapshot(entries, unkept)

    def restore(self, snapshot: WorkspaceSnapshot, work: Path) -> None:
        """Make the workspace what it was. Raises SnapshotLostError or OSError."""
        for saved in snapshot.entries.values():
            if saved.kind == "file" and _sha256_of(self._objects / saved.sha256) != saved.sha256:
                raise SnapshotLostError("the workspace's snapshot is damaged")
        empty(work)
        owner = identity()
        paths = {name_of(text): saved for text, saved in snapshot.entries.items()}
        for path, saved in paths.items():
            place = work / path
            if saved.kind == "folder":
                place.mkdir(0o700)
            elif saved.kind == "link":
                place.symlink_to(name_of(saved.target))
            else:
                shutil.copyfile(self._objects / saved.sha256, place)
                place.chmod(saved.mode)
            owner.own(place)
        for path, saved in reversed(paths.items()):
            if saved.kind == "folder":
                (work / path).chmod(saved.mode)

    def forget_all_but(self, snapshots: Iterable[WorkspaceSnapshot]) -> None:
        """Delete bytes that none of these needs."""
        needed = {saved.sha256 for snapshot in snapshots for saved in snapshot.entries.values()}
        with suppress(FileNotFoundError):
            for name in os.listdir(self._objects):
                if name not in needed:
                    (self._objects / name).unlink(missing_ok=True)

    def _saved(self, entry: FolderEntry, now_ns: int, *, keep: bool) -> Saved | None:
        mode = stat.S_IMODE(entry.info.st_mode) & 0o777
        if entry.is_folder:
            return Saved("folder", mode)
        if entry.is_link:
            return Saved("link", target=_text(os.readlink(entry.name, dir_fd=entry.parent)))
        if not entry.is_file:
            return None
        try:
            sha256 = self._digest(entry, now_ns, keep=keep)
        except PermissionError:  # the program closed it to its own user
            return None
        return Saved("file", mode, sha256, size=entry.info.st_size)

    def _digest(self, entry: FolderEntry, now_ns: int, *, keep: bool) -> str:
        info = entry.info
        key = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        known = self._known.get(key)
        if known is not None and (not keep or (self._objects / known).exists()):
            return known
        sha256 = self._read(entry, keep=keep)
        if now_ns - info.st_ctime_ns > _RACY_NS:
            self._known[key] = sha256
        return sha256

    def _read(self, entry: FolderEntry, *, keep: bool) -> str:
        """The file's digest; with `keep` its bytes are copied as they are read."""
        hasher = hashlib.sha256()
        copy = self._objects / f"new-{os.getpid()}" if keep else Path(os.devnull)
        if keep:
            self._objects.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(entry.open(), "rb") as file, copy.open("wb") as to:
            while data := file.read(_CHUNK):
                hasher.update(data)
                to.write(data)
        if keep:
            copy.rename(self._objects / hasher.hexdigest())
        return hasher.hexdigest()


def _sha256_of(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
