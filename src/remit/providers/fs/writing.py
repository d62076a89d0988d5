"""fs.write and fs.edit: a file is replaced as a whole or not at all.

The new content goes into a file of its own beside the old one, reaches the disk, and takes the old one's name in one
step; then the folder reaches the disk. A crash leaves the old file or the new one. While a file is replaced its folder
is locked against Remit's other writers, so two edits of one file at once both count.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final, Literal

from remit.blocking import Stop, wait_for_lock
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.confined import read_at, require_file, split, translated
from remit.providers.fs.edits import applied, diff, lines_of, undone, whole_diff
from remit.providers.fs.roots import Roots
from remit.providers.fs.shapes import EditArgs, EditResult, WriteArgs, WriteResult
from remit.tools.provider import Preview

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o666
"""Of a new file, less what the process's umask takes."""
_KEPT_BITS: Final = 0o777
"""Permission bits that a new content inherits; set-user-id was granted to the old content only."""


class Writing:
    """The writing tools over some roots."""

    def __init__(self, roots: Roots, max_read_bytes: int) -> None:
        self._roots = roots
        self._cap = max_read_bytes

    def write(self, asked: WriteArgs, key: str, stop: Stop) -> WriteResult:
        """Give a file this content; `key` names the call and with it the file that is written beside it."""
        root, path, _ = self._roots.find_for_writing(asked.path)
        data = _encoded(asked.content)
        folders, name = split(path)
        with root.folder(folders, asked.path, create=asked.create_folders) as fd, translated(asked.path):
            _lock(fd, stop)
            status = _status(fd, name, asked.path)
            # Only a file of the same length can have the same content: a large one need not be read to be replaced.
            comparable = status is not None and (asked.expect_sha256 is not None or status.st_size == len(data))
            old = read_at(fd, name, asked.path, max(self._cap, len(data))).data if comparable else None
            if old == data:
                _settle(fd, name)
                return _written(asked.path, "unchanged", data)
            _require_expected(asked.path, asked.expect_sha256, old)
            _replace(fd, name, data, status, key)
            return _written(asked.path, "created" if status is None else "replaced", data)

    def edit(self, asked: EditArgs, key: str, stop: Stop) -> EditResult:
        """Change a file."""
        root, path, _ = self._roots.find_for_writing(asked.path)
        folders, name = split(path)
        with root.folder(folders, asked.path) as fd, translated(asked.path):
            _lock(fd, stop)
            old = read_at(fd, name, asked.path, self._cap)
            _require_expected(asked.path, asked.expect_sha256, old.data)
            before = _text(asked.path, old.data)
            after = applied(before, asked.edits)
            _replace(fd, name, _encoded(after), old.status, key)
        return _edited(asked.path, before, after)

    def find_written(self, asked: WriteArgs) -> WriteResult | None:
        """The result if the file has the content a write was to give it."""
        data = _encoded(asked.content)
        found = self._present(asked.path, len(data))
        return _written(asked.path, "unchanged", data) if found == data else None

    def find_edited(self, asked: EditArgs) -> EditResult | None:
        """The result if the file is as the edit leaves it, None if as before; ProviderError if neither is certain."""
        found = self._present(asked.path, self._cap)
        if found is None:
            raise _undecided(asked.path, "is not there, or too large")
        if sha256(found) == asked.expect_sha256:
            return None
        after = _text(asked.path, found)
        before = undone(after, asked.edits)
        if asked.expect_sha256 is None:
            if before is None and _applicable(after, asked):
                return None
            if before is not None and not _applicable(after, asked):
                return _edited(asked.path, before, after)
        elif before is not None and sha256(_encoded(before)) == asked.expect_sha256:
            return _edited(asked.path, before, after)
        raise _undecided(asked.path, "is neither as it was nor as the edit leaves it")

    def preview_write(self, asked: WriteArgs) -> Preview:
        """What a write would change. Raises ProviderError."""
        self._roots.find_for_writing(asked.path)
        new = _lines(asked.content)
        try:
            before = _text(asked.path, self._now(asked.path, asked.expect_sha256))
        except ProviderError as exc:
            missing = {Code.FILE_NOT_FOUND, *((Code.FOLDER_NOT_FOUND,) if asked.create_folders else ())}
            if exc.code in missing and asked.expect_sha256 is None:
                return Preview(what=f"Creates {asked.path}, {new}.")
            if exc.code in {Code.FILE_NOT_TEXT, Code.FILE_TOO_LARGE}:
                return Preview(what=f"Replaces {asked.path}, which is not text or too large to compare, by {new}.")
            raise
        if before == asked.content:
            return Preview(what=f"Changes nothing: {asked.path} already holds this content.")
        what = f"Replaces {asked.path}: {_lines(before)} now, {new} afterwards."
        return Preview(what=what, diff=whole_diff(asked.path, before, asked.content))

    def preview_edit(self, asked: EditArgs) -> Preview:
        """What an edit would change. Raises ProviderError."""
        self._roots.find_for_writing(asked.path)
        before = _text(asked.path, self._now(asked.path, asked.expect_sha256))
        after = applied(before, asked.edits)
        what = f"Edits {asked.path}: {_lines(before)} now, {_lines(after)} afterwards."
        return Preview(what=what, diff=whole_diff(asked.path, before, after))

    def _now(self, path: str, expected: str | None) -> bytes:
        root, below, _ = self._roots.find(path)
        folders, name = split(below)
        with root.folder(folders, path) as fd, translated(path):
            old = read_at(fd, name, path, self._cap).data
        _require_expected(path, expected, old)
        return old

    def _present(self, path: str, cap: int) -> bytes | None:
        """The file's content, or None where there is no such file of at most `cap` bytes.

        It survives a loss of power from now on, for what is found of it is recorded as done.
        """
        root, below, _ = self._roots.find(path)
        try:
            folders, name = split(below)
            with root.folder(folders, below) as fd, translated(below):
                data = read_at(fd, name, below, cap).data
                _settle(fd, name)
                return data
        except ProviderError as exc:
            if exc.code in {Code.FILE_NOT_FOUND, Code.FOLDER_NOT_FOUND, Code.FILE_TOO_LARGE}:
                return None
            raise


def _encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as exc:
        raise ProviderError(f"The content cannot be written as UTF-8: {exc.reason}.") from exc


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise ProviderError(
            f"{path!r} is not UTF-8 text; only such a file can be edited.", code=Code.FILE_NOT_TEXT
        ) from exc


def _lines(text: str) -> str:
    count = len(lines_of(text))
    return f"{count:,} line{'' if count == 1 else 's'}"


def _status(fd: int, name: str, path: str) -> os.stat_result | None:
    """What is known of the file that is to be replaced, if there is one; it has to be a regular file."""
    try:
        status = os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        return None
    require_file(status.st_mode, path)
    return status


def _require_expected(path: str, expected: str | None, old: bytes | None) -> None:
    if expected is not None and (old is None or sha256(old) != expected):
        raise ProviderError(f"{path!r} is not the file that was expected; read it again.", code=Code.FILE_CHANGED)


def _lock(fd: int, stop: Stop) -> None:
    """Lock a folder until its descriptor is closed."""
    with suppress(OSError):  # some network file systems have no locks; replacing is atomic there too
        wait_for_lock(fd, stop)


def _replace(fd: int, name: str, data: bytes, old: os.stat_result | None, key: str) -> None:
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


def _settle(fd: int, name: str) -> None:
    """Make sure that content already there survives a crash: an earlier attempt may not have got so far."""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    os.fsync(fd)


def _written(path: str, change: Literal["created", "replaced", "unchanged"], data: bytes) -> WriteResult:
    return WriteResult(path=path, change=change, bytes=len(data), sha256=sha256(data))


def _edited(path: str, before: str, after: str) -> EditResult:
    old, new = _encoded(before), _encoded(after)
    shown = diff(path, before, after)
    return EditResult(
        path=path,
        diff=shown.text,
        diff_truncated=shown.truncated,
        bytes=len(new),
        sha256_before=sha256(old),
        sha256=sha256(new),
    )


def _applicable(text: str, asked: EditArgs) -> bool:
    try:
        return applied(text, asked.edits) != text
    except ProviderError:
        return False


def _undecided(path: str, why: str) -> ProviderError:
    return ProviderError(f"Whether {path!r} was edited is unknown: it {why}.", code=Code.OUTCOME_UNKNOWN)
