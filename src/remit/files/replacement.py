"""Putting a text in the place of another, in a folder that is open: whole or not at all.

The new content goes into a file of its own beside the old one, reaches the disk, and takes the old one's name in one
step; then the folder reaches the disk. A crash leaves the old file or the new one. While a file is replaced its folder
is locked against Remit's other writers, so two edits of one file at once both count.

Which root a path of an agent is below.

With one root, paths are relative to it. With several, the first component names the root by its folder's name, so that
a path means the same file whatever the folders hold.

Files and folders that are closed to tools, whatever folder they lie in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import ConfinedDirectory, WalkEntry, parts_of, require_file
from remit.threads import StopEvent, wait_for_lock

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o666
"""Of a new file, less what the process's umask takes."""
_KEPT_BITS: Final = 0o777
"""Permission bits that a new content inherits; set-user-id was granted to the old content only."""


def lock_folder(fd: int, stop: StopEvent) -> None:
    """Lock a folder until its descriptor is closed."""
    with suppress(OSError):  # some network file systems have no locks; replacing is atomic there too
        wait_for_lock(fd, stop)


def status_of(fd: int, name: str, path: str) -> os.stat_result | None:
    """Return what is known of the file that is to be replaced, if there is one; it has to be a regular file."""
    try:
        status = os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        return None
    require_file(status.st_mode, path)
    return status


def require_expected(path: str, expected: str | None, old: bytes | None) -> None:
    """Raise ProviderError (FILE_CHANGED) unless the file is the expected one, if one is expected."""
    if expected is not None and (old is None or sha256(old) != expected):
        raise ProviderError(f"{path!r} is not the file that was expected; read it again.", code=Code.FILE_CHANGED)


def replace_at(fd: int, name: str, data: bytes, old: os.stat_result | None, key: str) -> None:
    """Put `data` in the place of a file, whose status is `old`; `key` names the call. Raises ProviderError, OSError."""
    # Named by the call: a retry after a crash finds and replaces what the crash left behind.
    beside = f".remit-{key[:32]}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(beside, dir_fd=fd)
    try:
        _write_new(fd, beside, data, old)
        os.rename(beside, name, src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=fd)
        raise
    try:
        os.fsync(fd)
    except OSError as exc:
        # The new content is in place, but a crash could still bring the old one back: neither yes nor no.
        raise ProviderError(
            f"{name!r} was replaced, but its folder cannot be synced: {exc.strerror}.", code=Code.OUTCOME_UNKNOWN
        ) from exc


def _write_new(fd: int, name: str, data: bytes, old: os.stat_result | None) -> None:
    file = os.open(name, _NEW, _MODE, dir_fd=fd)
    try:
        if old is not None:
            with suppress(PermissionError):  # only root gives files away; the mode bits matter more
                os.fchown(file, old.st_uid, old.st_gid)
            os.fchmod(file, old.st_mode & _KEPT_BITS)
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
    finally:
        os.close(file)


def settle(fd: int, name: str) -> None:
    """Make sure that content already there survives a crash: an earlier attempt may not have got so far."""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    os.fsync(fd)


def encoded(content: str) -> bytes:
    """The bytes of a text. Raises ProviderError."""
    try:
        return content.encode()
    except UnicodeEncodeError as exc:
        raise ProviderError(f"The content cannot be written as UTF-8: {exc.reason}.") from exc


def text_of(path: str, data: bytes) -> str:
    """The text of a file that can be edited. Raises ProviderError (FILE_NOT_TEXT)."""
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise ProviderError(
            f"{path!r} is not UTF-8 text; only such a file can be edited.", code=Code.FILE_NOT_TEXT
        ) from exc


class Closed:
    """Some files, and folders with all that is in them."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._places = tuple(str(path.resolve()).casefold() for path in paths)

    def below(self, folder: Path) -> Closed:
        """Those that lie in a folder, or that it lies in: most folders have none."""
        place, closed = str(folder).casefold(), Closed()
        closed._places = tuple(path for path in self._places if _within(path, place) or _within(place, path))
        return closed

    def __contains__(self, place: str) -> bool:
        """Return whether a path without links is one of them, or lies in one."""
        return bool(self._places) and any(_within(place.casefold(), closed) for closed in self._places)


def _within(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder.rstrip('/')}/")


_OURS = ".remit"
"""Holds the journal: what an agent did is not the agent's to read or to change."""
_SETTINGS = "remit.toml"
"""Holds the policy: what an agent may do is not the agent's to decide."""


def is_ours(name: str) -> bool:
    """Return whether a file or folder of this name belongs to Remit: it is not read, listed or searched."""
    return name.casefold() == _OURS


class Roots:
    """The roots by the name an agent knows them by; the only one has no name.

    A root reached twice counts once. Nothing in `decisive` is changed, nor below it; nothing in `private` is read,
    listed or searched either.
    """

    def __init__(self, folders: Sequence[Path], decisive: Sequence[Path] = (), private: Sequence[Path] = ()) -> None:
        self._decisive = Closed(decisive)
        self._private = Closed(private)
        resolved = list(dict.fromkeys(folder.resolve() for folder in folders))
        self.names: dict[str, ConfinedDirectory] = {}
        if len(resolved) == 1:
            self.names[""] = ConfinedDirectory(resolved[0])
            return
        for folder in resolved:
            self.names[self._free(folder.name or "root")] = ConfinedDirectory(folder)

    def _free(self, name: str) -> str:
        wanted, number = name, 2
        while name in self.names:
            name, number = f"{wanted}-{number}", number + 1
        return name

    @property
    def several(self) -> bool:
        """Return whether a path begins with the name of its root."""
        return "" not in self.names

    def find(self, path: str) -> tuple[ConfinedDirectory, str, str]:
        """The root of a path, the path below it, and what stands before a path below it. Raises ProviderError."""
        parts = parts_of(path)
        if any(is_ours(part) for part in parts):
            raise ProviderError(f"{path!r} belongs to Remit itself.", code=Code.PATH_NOT_ALLOWED)
        root, below, prefix = self._rooted(parts, path)
        if f"{root.root}/{below}" in self._private:
            raise ProviderError(f"{path!r} belongs to Remit itself.", code=Code.PATH_NOT_ALLOWED)
        return root, below, prefix

    def shown(self, root: ConfinedDirectory) -> Callable[[WalkEntry], bool]:
        """Return whether what a walk through a root meets is listed and searched."""
        private, place = self._private.below(root.root), root.root
        return lambda entry: not is_ours(entry.name) and f"{place}/{entry.path}" not in private

    def _rooted(self, parts: list[str], path: str) -> tuple[ConfinedDirectory, str, str]:
        if not self.several:
            return self.names[""], "/".join(parts), ""
        root = self.names.get(parts[0]) if parts else None
        if root is None:
            known = ", ".join(sorted(self.names)) or "none"
            message = f"{path!r} has to begin with the name of a folder that is open to agents: {known}."
            raise ProviderError(message, code=Code.PATH_NOT_ALLOWED)
        return root, "/".join(parts[1:]), parts[0] + "/"

    def find_for_writing(self, path: str) -> tuple[ConfinedDirectory, str, str]:
        """As `find`, for a file that is going to be changed. Raises ProviderError."""
        target = self.find(path)
        if target[1].rpartition("/")[2].casefold() == _SETTINGS:
            message = f"{path!r} holds Remit's settings and policy; only a person changes it."
            raise ProviderError(message, code=Code.PATH_NOT_ALLOWED)
        if f"{target[0].root}/{target[1]}" in self._decisive:
            message = f"{path!r} is code that Remit runs, or decides what it may do; only a person changes it."
            raise ProviderError(message, code=Code.PATH_NOT_ALLOWED)
        return target
