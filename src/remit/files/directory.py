"""A folder that paths cannot leave.

Every component of a path is opened relative to the descriptor of the one before it, and a symbolic link is never
followed. So there is no moment between a check and its use: a link that is put in place while a call runs is refused
like one that was there before. Only regular files are read; opening waits for nothing, so a pipe cannot hold a call.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

from remit.codes import Code
from remit.errors import ProviderError
from remit.files.text import is_utf8

MAX_DEPTH: Final = 64
"""Folders a path may pass through; a walk goes no deeper."""

Kind = Literal["file", "folder", "link", "other", "closed", "unnamed"]
"""`closed` is a folder that cannot be entered, `unnamed` what has a name that is not UTF-8, which JSON cannot carry."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_CODES: Final = {
    errno.ENOENT: Code.FILE_NOT_FOUND,
    errno.ELOOP: Code.PATH_NOT_ALLOWED,
    errno.ENAMETOOLONG: Code.PATH_NOT_ALLOWED,
    errno.ENXIO: Code.PATH_NOT_ALLOWED,  # a socket, or a device that is not there
    errno.ENOTDIR: Code.FOLDER_NOT_FOUND,
    errno.EISDIR: Code.FILE_IS_FOLDER,
    errno.EACCES: Code.FILE_ACCESS_DENIED,
    errno.EPERM: Code.FILE_ACCESS_DENIED,
    errno.EROFS: Code.FILE_ACCESS_DENIED,
    errno.ENOSPC: Code.DISK_FULL,
    errno.EDQUOT: Code.DISK_FULL,
    errno.ESTALE: Code.FILE_CHANGED,
}


class Bytes(NamedTuple):
    """The content of a file at one moment."""

    data: bytes
    status: os.stat_result


class WalkEntry(NamedTuple):
    """An entry that a walk met."""

    path: str
    """Below the root, with `/` between components."""
    kind: Kind
    size: int
    mtime_ns: int

    @property
    def name(self) -> str:
        """The last component."""
        return self.path.rpartition("/")[2]


class ConfinedDirectory:
    """A folder, and what can be reached inside it.

    It stays in `root`, or in the folder that `inside` leads to from there. `root` may itself be reached through links:
    the person who owns the machine named it. `inside` may not.
    """

    def __init__(self, root: Path, inside: Sequence[str] = ()) -> None:
        self.root = root
        self.inside = tuple(inside)

    def read(self, path: str, cap: int) -> Bytes:
        """The whole content of a regular file of at most `cap` bytes. Raises ProviderError."""
        parents, name = split(path)
        with self.folder(parents, path) as fd, translated(path):
            return read_at(fd, name, path, cap)

    @contextmanager
    def folder(self, parts: list[str], path: str, *, create: bool = False) -> Iterator[int]:
        """The open descriptor of the folder that `parts` lead to; `path` is named in errors. Raises ProviderError."""
        fd = self._open_root()
        try:
            for part in (*self.inside, *parts):
                with translated(path):
                    deeper = _enter(fd, part, path, create=create)
                os.close(fd)
                fd = deeper
            yield fd
        finally:
            os.close(fd)

    def _open_root(self) -> int:
        try:
            return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as exc:
            code = Code.FILE_ACCESS_DENIED if exc.errno in {errno.EACCES, errno.EPERM} else Code.FOLDER_NOT_FOUND
            raise ProviderError(f"{str(self.root)!r} cannot be opened as a folder: {exc.strerror}.", code=code) from exc

    def walk(
        self, path: str = "", *, depth: int = MAX_DEPTH, enter: Callable[[WalkEntry], bool]
    ) -> Generator[WalkEntry, None, None]:
        """Everything below a folder, each folder's content by name, a folder before what it holds.

        A folder for which `enter` says no, or that lies deeper than `depth`, is met and not entered. Raises
        ProviderError if `path` is not a folder.
        """
        parts = parts_of(path)
        with self.folder(parts, path) as fd, translated(path):
            yield from _walk(fd, "/".join(parts), depth, enter)


def parts_of(path: str) -> list[str]:
    """The components of a path below a root, none for the root itself. Raises ProviderError if it could leave."""
    if path.startswith("/"):
        raise unsafe(path, "is absolute; name it below the folder")
    if "\0" in path:
        raise unsafe(path, "contains a NUL character")
    if not is_utf8(path):
        raise unsafe(path, "is not valid Unicode")
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise unsafe(path, "climbs with '..'")
    if len(parts) > MAX_DEPTH:
        raise unsafe(path, f"passes through more than {MAX_DEPTH} folders")
    return parts


def split(path: str) -> tuple[list[str], str]:
    """The folders a file lies in, and its name. Raises ProviderError."""
    parts = parts_of(path)
    if not parts:
        raise ProviderError(f"{path!r} names the folder itself, not a file in it.", code=Code.FILE_IS_FOLDER)
    return parts[:-1], parts[-1]


def unsafe(path: str, reason: str) -> ProviderError:
    """The refusal of a path."""
    return ProviderError(f"The path {path!r} {reason}.", code=Code.PATH_NOT_ALLOWED)


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn what the operating system says about `path` into a ProviderError with a stable code."""
    try:
        yield
    except OSError as exc:
        code = _CODES.get(exc.errno or 0, Code.FILE_IO_FAILED)
        raise ProviderError(f"{path!r}: {exc.strerror or exc}. {code.meaning}", code=code) from exc


def kind_of(mode: int) -> Kind:
    """Return what a file's mode bits say it is."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _enter(fd: int, part: str, path: str, *, create: bool) -> int:
    try:
        if create and not _present(fd, part):
            _make_folder(fd, part)
        return os.open(part, _FOLDER, dir_fd=fd)
    except FileNotFoundError:
        reason = f"{path!r}: the folder" if path else "The folder"
        raise ProviderError(f"{reason} {part!r} does not exist.", code=Code.FOLDER_NOT_FOUND) from None
    except OSError:
        # Systems answer ELOOP or ENOTDIR for a link here: look, so that the refusal says what it is.
        if kind_of(os.lstat(part, dir_fd=fd).st_mode) == "link":
            raise unsafe(path, f"passes through {part!r}, a symbolic link; links are never followed") from None
        raise


def _present(fd: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        return False
    return True


def _make_folder(fd: int, part: str) -> None:
    try:
        os.mkdir(part, dir_fd=fd)
    except FileExistsError:
        return  # someone else was quicker; whether it is a folder shows when it is opened
    os.fsync(fd)


def read_at(fd: int, name: str, path: str, cap: int) -> Bytes:
    """The content of a regular file in an open folder; `path` is named in errors. Raises ProviderError, OSError."""
    try:
        file = os.open(name, _FILE, dir_fd=fd)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise unsafe(path, "is a symbolic link; links are never followed") from None
        raise
    try:
        status = os.fstat(file)
        require_file(status.st_mode, path)
        if status.st_size > cap:
            raise _too_large(path, cap)
        with os.fdopen(file, "rb", closefd=False) as stream:
            data = stream.read(cap + 1)
    finally:
        os.close(file)
    if len(data) > cap:  # it grew, or is one of those files whose size is only known by reading
        raise _too_large(path, cap)
    return Bytes(data, status)


def require_file(mode: int, path: str) -> None:
    """Raise ProviderError unless the mode bits are a regular file's."""
    kind = kind_of(mode)
    if kind == "folder":
        raise ProviderError(f"{path!r} is a folder, not a file.", code=Code.FILE_IS_FOLDER)
    if kind == "link":
        raise unsafe(path, "is a symbolic link; links are never followed")
    if kind == "other":
        raise unsafe(path, "is a pipe, socket or device, not a regular file")


def _too_large(path: str, cap: int) -> ProviderError:
    return ProviderError(f"{path!r} is larger than the limit of {cap:,} bytes.", code=Code.FILE_TOO_LARGE)


def _walk(fd: int, above: str, depth: int, enter: Callable[[WalkEntry], bool]) -> Iterator[WalkEntry]:
    for entry in _entries(fd, above):
        if entry.kind != "folder" or depth <= 0 or not enter(entry):
            yield entry
            continue
        try:
            deeper = os.open(entry.name, _FOLDER, dir_fd=fd)
        except OSError:
            yield entry._replace(kind="closed")
            continue
        try:
            yield entry
            yield from _walk(deeper, entry.path, depth - 1, enter)
        finally:
            os.close(deeper)


def _entries(fd: int, above: str) -> list[WalkEntry]:
    prefix = above + "/" if above else ""
    entries: list[WalkEntry] = []
    with os.scandir(fd) as items:
        for item in items:
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since the folder was listed
            kind = kind_of(status.st_mode) if is_utf8(item.name) else "unnamed"
            name = os.fsencode(item.name).decode(errors="backslashreplace") if kind == "unnamed" else item.name
            entries.append(WalkEntry(prefix + name, kind, status.st_size, status.st_mtime_ns))
    entries.sort()
    return entries
