"""fs.write and fs.edit: a file is replaced as a whole or not at all (remit.files.replacing)."""

from __future__ import annotations

from typing import Literal

from remit.blocking import Stop
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.confined import read_at, split, translated
from remit.files.edits import applied, diff, line_count, undone, whole_diff
from remit.files.replacing import Roots, encoded, lock_folder, replace_at, require_expected, settle, status_of, text_of
from remit.providers.fs.shapes import EditArgs, EditResult, WriteArgs, WriteResult
from remit.tools.provider import Preview


class Writing:
    """The writing tools over some roots."""

    def __init__(self, roots: Roots, max_read_bytes: int) -> None:
        self._roots = roots
        self._cap = max_read_bytes

    def write(self, asked: WriteArgs, key: str, stop: Stop) -> WriteResult:
        """Give a file this content; `key` names the call and with it the file that is written beside it."""
        root, path, _ = self._roots.find_for_writing(asked.path)
        data = encoded(asked.content)
        folders, name = split(path)
        with root.folder(folders, asked.path, create=asked.create_folders) as fd, translated(asked.path):
            lock_folder(fd, stop)
            status = status_of(fd, name, asked.path)
            # Only a file of the same length can have the same content: a large one need not be read to be replaced.
            comparable = status is not None and (asked.expect_sha256 is not None or status.st_size == len(data))
            old = read_at(fd, name, asked.path, max(self._cap, len(data))).data if comparable else None
            if old == data:
                settle(fd, name)
                return _written(asked.path, "unchanged", data)
            require_expected(asked.path, asked.expect_sha256, old)
            replace_at(fd, name, data, status, key)
            return _written(asked.path, "created" if status is None else "replaced", data)

    def edit(self, asked: EditArgs, key: str, stop: Stop) -> EditResult:
        """Change a file."""
        root, path, _ = self._roots.find_for_writing(asked.path)
        folders, name = split(path)
        with root.folder(folders, asked.path) as fd, translated(asked.path):
            lock_folder(fd, stop)
            old = read_at(fd, name, asked.path, self._cap)
            require_expected(asked.path, asked.expect_sha256, old.data)
            before = text_of(asked.path, old.data)
            after = applied(before, asked.edits)
            replace_at(fd, name, encoded(after), old.status, key)
        return _edited(asked.path, before, after)

    def find_written(self, asked: WriteArgs) -> WriteResult | None:
        """The result if the file has the content a write was to give it."""
        data = encoded(asked.content)
        found = self._present(asked.path, len(data))
        return _written(asked.path, "unchanged", data) if found == data else None

    def find_edited(self, asked: EditArgs) -> EditResult | None:
        """The result if the file is as the edit leaves it, None if as before; ProviderError if neither is certain."""
        found = self._present(asked.path, self._cap)
        if found is None:
            raise _undecided(asked.path, "is not there, or too large")
        if sha256(found) == asked.expect_sha256:
            return None
        after = text_of(asked.path, found)
        before = undone(after, asked.edits)
        if asked.expect_sha256 is None:
            if before is None and _applicable(after, asked):
                return None
            if before is not None and not _applicable(after, asked):
                return _edited(asked.path, before, after)
        elif before is not None and sha256(encoded(before)) == asked.expect_sha256:
            return _edited(asked.path, before, after)
        raise _undecided(asked.path, "is neither as it was nor as the edit leaves it")

    def preview_write(self, asked: WriteArgs) -> Preview:
        """Return what a write would change. Raises ProviderError."""
        self._roots.find_for_writing(asked.path)
        new = line_count(asked.content)
        try:
            before = text_of(asked.path, self._now(asked.path, asked.expect_sha256))
        except ProviderError as exc:
            missing = {Code.FILE_NOT_FOUND, *((Code.FOLDER_NOT_FOUND,) if asked.create_folders else ())}
            if exc.code in missing and asked.expect_sha256 is None:
                return Preview(what=f"Creates {asked.path}, {new}.", diff=whole_diff(asked.path, "", asked.content))
            if exc.code in {Code.FILE_NOT_TEXT, Code.FILE_TOO_LARGE}:
                return Preview(what=f"Replaces {asked.path}, which is not text or too large to compare, by {new}.")
            raise
        if before == asked.content:
            return Preview(what=f"Changes nothing: {asked.path} already holds this content.")
        what = f"Replaces {asked.path}: {line_count(before)} now, {new} afterwards."
        return Preview(what=what, diff=whole_diff(asked.path, before, asked.content))

    def preview_edit(self, asked: EditArgs) -> Preview:
        """Return what an edit would change. Raises ProviderError."""
        self._roots.find_for_writing(asked.path)
        before = text_of(asked.path, self._now(asked.path, asked.expect_sha256))
        after = applied(before, asked.edits)
        what = f"Edits {asked.path}: {line_count(before)} now, {line_count(after)} afterwards."
        return Preview(what=what, diff=whole_diff(asked.path, before, after))

    def _now(self, path: str, expected: str | None) -> bytes:
        root, below, _ = self._roots.find(path)
        folders, name = split(below)
        with root.folder(folders, path) as fd, translated(path):
            old = read_at(fd, name, path, self._cap).data
        require_expected(path, expected, old)
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
                settle(fd, name)
                return data
        except ProviderError as exc:
            if exc.code in {Code.FILE_NOT_FOUND, Code.FOLDER_NOT_FOUND, Code.FILE_TOO_LARGE}:
                return None
            raise


def _written(path: str, change: Literal["created", "replaced", "unchanged"], data: bytes) -> WriteResult:
    return WriteResult(path=path, change=change, bytes=len(data), sha256=sha256(data))


def _edited(path: str, before: str, after: str) -> EditResult:
    old, new = encoded(before), encoded(after)
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
