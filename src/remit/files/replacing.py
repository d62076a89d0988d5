"""Putting a text in the place of another, in a folder that is open: whole or not at all.

The new content goes into a file of its own beside the old one, reaches the disk, and takes the old one's name in one
step; then the folder reaches the disk. A crash leaves the old file or the new one. While a file is replaced its folder
is locked against Remit's other writers, so two edits of one file at once both count.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from remit.blocking import Stop, wait_for_lock
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.confined import require_file

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o666
"""Of a new file, less what the process's umask takes."""
_KEPT_BITS: Final = 0o777
"""Permission bits that a new content inherits; set-user-id was granted to the old content only."""


def lock_folder(fd: int, stop: Stop) -> None:
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
