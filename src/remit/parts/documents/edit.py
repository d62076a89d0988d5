"""Edits in two phases: a proposal that shows what would change, and a change that is made only to what was shown.

propose   reads the file; returns its digest now, the diff, and the digest afterwards
apply     made if the file still has that digest: the earlier content is kept, then the file is replaced as a whole
undo      brings a kept content back, if the file still is what the edit left

The earlier content is durable before the file is replaced, so a crash between any two steps leaves the old file, or the
new one and its undo. A repetition finds what it was to leave, and says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple

from remit.atomic import replace_file
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import read_at, split, translated
from remit.files.edits import applied, diff, line_count, whole_diff
from remit.files.replacement import Roots, encoded, lock_folder, replace_at, settle, status_of, text_of
from remit.parts.documents.shapes import ApplyArgs, ApplyResult, Proposal, ProposeArgs, UndoArgs
from remit.threads import StopEvent
from remit.tools.provider import Preview

Change = Literal["created", "edited", "unchanged", "undone"]
Wanted = Callable[[str, bytes | None], bytes]
"""The content after a change, of a file's place and its content before. Raises ProviderError."""
_DIGITS: Final = 32


class KeptContents:
    """Earlier contents of files, each found by its file's place and its digest."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most

    def put(self, place: str, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self._named(place, sha256(data))
        if not target.exists():
            replace_file(target, data)
        os.utime(target)
        by_age = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in by_age[: -self._most]:
            path.unlink(missing_ok=True)

    def get(self, place: str, digest: str) -> bytes | None:
        try:
            data = self._named(place, digest).read_bytes()
        except FileNotFoundError:
            return None
        return data if sha256(data) == digest else None

    def _named(self, place: str, digest: str) -> Path:
        where = sha256(place.encode()).partition(":")[2][:_DIGITS]
        return self._folder / f"{where}-{digest.partition(':')[2]}"


class _Now(NamedTuple):
    """A file as it is."""

    data: bytes | None
    """None: the file does not exist."""
    status: os.stat_result | None


class Editing:
    """The editing tools over some roots."""

    def __init__(self, roots: Roots, max_bytes: int, contents: KeptContents) -> None:
        self._roots = roots
        self._cap = max_bytes
        self._contents = contents

    def propose(self, args: ProposeArgs) -> Proposal:
        """Return what a change would do."""
        _, before = self._read(args.path)
        after = _after(args, before)
        old = "" if before is None else text_of(args.path, before)
        shown = diff(args.path, old, text_of(args.path, after))
        return Proposal(
            path=args.path,
            changes=before != after,
            diff=shown.text if before != after else "",
            diff_truncated=shown.truncated,
            sha256=None if before is None else sha256(before),
            sha256_after=sha256(after),
        )

    def apply(self, args: ApplyArgs, key: str, stop: StopEvent) -> ApplyResult:
        """Make a change."""
        return self._replace(args.path, args.sha256, lambda _, old: _after(args, old), key, stop)

    def undo(self, args: UndoArgs, key: str, stop: StopEvent) -> ApplyResult:
        """Bring an earlier content back."""
        return self._replace(args.path, args.sha256, lambda place, _: self._back(args, place), key, stop, "undone")

    def find_applied(self, args: ApplyArgs) -> ApplyResult | None:
        """The result if the change was made, None if not. Raises ProviderError (OUTCOME_UNKNOWN) if it cannot tell."""
        return self._found(args.path, args.sha256, lambda _, old: _after(args, old), "edited")

    def find_undone(self, args: UndoArgs) -> ApplyResult | None:
        """Likewise of an undo."""
        return self._found(args.path, args.sha256, lambda place, _: self._back(args, place), "undone")

    def preview_apply(self, args: ApplyArgs) -> Preview:
        """Return what a change would do now. Raises ProviderError."""
        _, before = self._read(args.path)
        return _preview(args.path, args.sha256, before, lambda: _after(args, before))

    def preview_undo(self, args: UndoArgs) -> Preview:
        """Return what an undo would do now. Raises ProviderError."""
        place, before = self._read(args.path)
        return _preview(args.path, args.sha256, before, lambda: self._back(args, place))

    # --- common

    def _read(self, path: str, *, settled: bool = False) -> tuple[str, bytes | None]:
        """The place of a file, and its content if it is there; changing it has to be allowed.

        `settled`: it survives a loss of power from now on, for what is found of it is recorded as done.
        """
        root, below, _ = self._roots.find_for_writing(path)
        folders, name = split(below)
        with root.folder(folders, path) as fd, translated(path):
            data = self._now(fd, name, path).data
            if settled and data is not None:
                settle(fd, name)
            return f"{root.root}/{below}", data

    def _now(self, fd: int, name: str, path: str) -> _Now:
        status = status_of(fd, name, path)
        return _Now(None if status is None else read_at(fd, name, path, self._cap).data, status)

    def _replace(
        self, path: str, expected: str | None, wanted: Wanted, key: str, stop: StopEvent, change: Change = "edited"
    ) -> ApplyResult:
        root, below, _ = self._roots.find_for_writing(path)
        folders, name = split(below)
        place = f"{root.root}/{below}"
        with root.folder(folders, path) as fd, translated(path):
            lock_folder(fd, stop)
            now = self._now(fd, name, path)
            if _digest(now.data) != expected:
                done = self._kept_change(place, expected, wanted)
                if now.data is None or now.data != done:
                    raise _changed(path, expected)
                settle(fd, name)
                return _result(path, "unchanged", expected, now.data)
            after = wanted(place, now.data)
            if after == now.data:
                settle(fd, name)
                return _result(path, "unchanged", expected, after)
            if now.data is not None:
                self._contents.put(place, now.data)
            replace_at(fd, name, after, now.status, key)
        return _result(path, change if now.data is not None else "created", expected, after)

    def _kept_change(self, place: str, expected: str | None, wanted: Wanted) -> bytes | None:
        """Return the content that the change left, if it was made before; None if it certainly was not."""
        before = None if expected is None else self._contents.get(place, expected)
        if expected is not None and before is None:
            return None
        try:
            return wanted(place, before)
        except ProviderError:
            return None

    def _back(self, args: UndoArgs, place: str) -> bytes:
        data = self._contents.get(place, args.back_to)
        if data is None:
            raise ProviderError(f"{args.path!r}: no content {args.back_to} is kept.", code=Code.UNDO_NOT_KEPT)
        return data

    def _found(self, path: str, expected: str | None, wanted: Wanted, change: Change) -> ApplyResult | None:
        place, now = self._read(path, settled=True)
        if _digest(now) == expected:
            return None
        after = self._kept_change(place, expected, wanted)
        if now is None or now != after:
            raise ProviderError(f"{path!r} is neither as it was nor as the edit leaves it.", code=Code.OUTCOME_UNKNOWN)
        return _result(path, change if expected is not None else "created", expected, after)


def _after(args: ProposeArgs | ApplyArgs, before: bytes | None) -> bytes:
    """The content after a change. Raises ProviderError."""
    if (args.content is None) == (not args.edits):
        raise ProviderError("Give either edits or content.")
    if args.content is not None:
        return encoded(args.content)
    if before is None:
        raise ProviderError(f"{args.path!r} does not exist; give its content.", code=Code.FILE_NOT_FOUND)
    return encoded(applied(text_of(args.path, before), args.edits))


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data)


def _changed(path: str, expected: str | None) -> ProviderError:
    what = "exists by now" if expected is None else "changed since the change was proposed"
    return ProviderError(f"{path!r} {what}; propose it again.", code=Code.FILE_CHANGED)


def _preview(path: str, expected: str | None, before: bytes | None, after: Callable[[], bytes]) -> Preview:
    if _digest(before) != expected:
        raise _changed(path, expected)
    new = text_of(path, after())
    if before is None:
        return Preview(what=f"Creates {path}, {line_count(new)}.", diff=whole_diff(path, "", new))
    old = text_of(path, before)
    if old == new:
        return Preview(what=f"Changes nothing: {path} already holds this content.")
    what = f"Edits {path}: {line_count(old)} now, {line_count(new)} afterwards."
    return Preview(what=what, diff=whole_diff(path, old, new))


def _result(path: str, change: Change, before: str | None, after: bytes) -> ApplyResult:
    return ApplyResult(path=path, change=change, bytes=len(after), sha256_before=before, sha256=sha256(after))
