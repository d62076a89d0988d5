"""The provider of the fs tools.

fs.list, fs.read and fs.search.

fs.write and fs.edit: a file is replaced as a whole or not at all (remit.files.replacement).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from remit.canonical import sha256
from remit.capability import Check, Look, Opening
from remit.codes import Code
from remit.errors import ProviderError, SchemaError
from remit.files.directory import ConfinedDirectory, WalkEntry, parts_of, read_at, split, translated
from remit.files.edits import applied, diff, line_count, undone, whole_diff
from remit.files.replacement import (
    Roots,
    encoded,
    lock_folder,
    replace_at,
    require_expected,
    settle,
    status_of,
    text_of,
)
from remit.files.text import decode
from remit.providers.fs.shapes import (
    EditArgs,
    EditResult,
    ListArgs,
    Listed,
    ListResult,
    Match,
    ReadArgs,
    ReadResult,
    SearchArgs,
    SearchResult,
    WriteArgs,
    WriteResult,
)
from remit.threads import StopEvent, Threads
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare
from remit.tools.schema import validator_of

FILES_MOST: Final = 20_000
"""Files one search looks at."""
LINE_MOST: Final = 500
"""Characters of a matching line that are returned."""
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules", ".git", ".hg", ".svn"})
"""Folders that a search does not enter unless it starts there."""

Test = Callable[[str], bool]
Hidden = Callable[[str, dict[str, Any]], bool]
"""Whether the rules keep a call of a tool from the caller."""


class FileReading:
    """The reading tools over some roots."""

    def __init__(self, roots: Roots, max_read_bytes: int) -> None:
        self._roots = roots
        self._cap = max_read_bytes

    def list(self, args: ListArgs, stop: StopEvent, hidden: Hidden | None = None) -> ListResult:
        """The entries of a folder that could be listed by themselves."""
        items: list[Listed] = []
        for entry in self._entries(args.path, deep=args.recursive, enter=lambda _: True):
            stop.check()
            if hidden is not None and hidden("fs.list", {"path": entry.path}):
                continue
            if len(items) == args.limit:
                return ListResult(items=items, truncated=True)
            items.append(Listed(path=entry.path, kind=entry.kind, bytes=entry.size, modified=entry.mtime_ns // 1_000))
        return ListResult(items=items, truncated=False)

    def read(self, args: ReadArgs, _stop: StopEvent) -> ReadResult:
        """The text of a file."""
        root, path, _ = self._roots.find(args.path)
        data = root.read(path, self._cap).data
        text = decode(data)
        if text is None:
            raise ProviderError(f"{args.path!r} is not text in a known encoding.", code=Code.FILE_NOT_TEXT)
        return ReadResult(path=args.path, text=text, bytes=len(data), sha256=sha256(data))

    def search(self, args: SearchArgs, stop: StopEvent, hidden: Hidden | None = None) -> SearchResult:
        """The lines that match, in every text file of a folder that could be read or searched by itself."""
        test = _test(args)
        matches: list[Match] = []
        files = skipped = 0
        for entry in self._entries(args.path, deep=True, enter=_worth_entering):
            stop.check()
            if entry.kind != "file" or (hidden is not None and _kept_back(hidden, args, entry.path)):
                continue
            if files + skipped == FILES_MOST:
                return SearchResult(matches=matches, files=files, skipped=skipped, truncated=True)
            text = self._text(entry.path)
            if text is None:
                skipped += 1
                continue
            files += 1
            room = args.limit - len(matches)
            matches += islice(_matches(entry.path, text, test), room + 1)
            if len(matches) > args.limit:
                return SearchResult(matches=matches[: args.limit], files=files, skipped=skipped, truncated=True)
        return SearchResult(matches=matches, files=files, skipped=skipped, truncated=False)

    def _entries(self, path: str, *, deep: bool, enter: Callable[[WalkEntry], bool]) -> Iterator[WalkEntry]:
        """Give what is below a path, named as an agent names it."""
        if self._roots.several and not parts_of(path):
            for name, root in sorted(self._roots.names.items()):
                yield WalkEntry(name, "folder", 0, 0)
                if deep:
                    yield from self._named(root, "", f"{name}/", deep=True, enter=enter)
            return
        root, below, prefix = self._roots.find(path)
        yield from self._named(root, below, prefix, deep=deep, enter=enter)

    def _named(
        self, root: ConfinedDirectory, path: str, prefix: str, *, deep: bool, enter: Callable[[WalkEntry], bool]
    ) -> Iterator[WalkEntry]:
        shown = self._roots.shown(root)
        for entry in root.walk(path, enter=lambda each: deep and shown(each) and enter(each)):
            if shown(entry):
                yield entry._replace(path=prefix + entry.path)

    def _text(self, path: str) -> str | None:
        root, below, _ = self._roots.find(path)
        try:
            return decode(root.read(below, self._cap).data)
        except ProviderError:
            return None


def _kept_back(hidden: Hidden, args: SearchArgs, path: str) -> bool:
    return hidden("fs.read", {"path": path}) or hidden("fs.search", {"query": args.query, "path": path})


def _worth_entering(folder: WalkEntry) -> bool:
    return folder.name not in _LEFT_OUT


def _matches(path: str, text: str, test: Test) -> Iterator[Match]:
    for number, line in enumerate(text.split("\n"), 1):
        if test(line):
            yield Match(path=path, line=number, text=line.rstrip("\r")[:LINE_MOST])


def _test(args: SearchArgs) -> Test:
    """Say whether a line matches. An agent's pattern runs on a linear-time engine: no pattern can hold the process."""
    query = args.query
    if args.regex:
        pattern = f"(?i){query}" if args.ignore_case else query
        try:
            return validator_of({"type": "string", "pattern": pattern}).is_valid
        except SchemaError as exc:
            raise ProviderError(f"{query!r} is not a regular expression this search can run.") from exc
    if args.ignore_case:
        query = query.casefold()
        return lambda line: query in line.casefold()
    return lambda line: query in line


class FileWriting:
    """The writing tools over some roots."""

    def __init__(self, roots: Roots, max_read_bytes: int) -> None:
        self._roots = roots
        self._cap = max_read_bytes

    def write(self, args: WriteArgs, key: str, stop: StopEvent) -> WriteResult:
        """Give a file this content; `key` names the call and with it the file that is written beside it."""
        root, path, _ = self._roots.find_for_writing(args.path)
        data = encoded(args.content)
        folders, name = split(path)
        with root.folder(folders, args.path, create=args.create_folders) as fd, translated(args.path):
            lock_folder(fd, stop)
            status = status_of(fd, name, args.path)
            # Only a file of the same length can have the same content: a large one need not be read to be replaced.
            comparable = status is not None and (args.expect_sha256 is not None or status.st_size == len(data))
            old = read_at(fd, name, args.path, max(self._cap, len(data))).data if comparable else None
            if old == data:
                settle(fd, name)
                return _written(args.path, "unchanged", data)
            require_expected(args.path, args.expect_sha256, old)
            replace_at(fd, name, data, status, key)
            return _written(args.path, "created" if status is None else "replaced", data)

    def edit(self, args: EditArgs, key: str, stop: StopEvent) -> EditResult:
        """Change a file."""
        root, path, _ = self._roots.find_for_writing(args.path)
        folders, name = split(path)
        with root.folder(folders, args.path) as fd, translated(args.path):
            lock_folder(fd, stop)
            old = read_at(fd, name, args.path, self._cap)
            require_expected(args.path, args.expect_sha256, old.data)
            before = text_of(args.path, old.data)
            after = applied(before, args.edits)
            replace_at(fd, name, encoded(after), old.status, key)
        return _edited(args.path, before, after)

    def find_written(self, args: WriteArgs) -> WriteResult | None:
        """The result if the file has the content a write was to give it."""
        data = encoded(args.content)
        present = self._present(args.path, len(data))
        return _written(args.path, "unchanged", data) if present == data else None

    def find_edited(self, args: EditArgs) -> EditResult | None:
        """The result if the file is as the edit leaves it, None if as before; ProviderError if neither is certain."""
        present = self._present(args.path, self._cap)
        if present is None:
            raise _undecided(args.path, "is not there, or too large")
        if sha256(present) == args.expect_sha256:
            return None
        after = text_of(args.path, present)
        before = undone(after, args.edits)
        if args.expect_sha256 is None:
            if before is None and _applicable(after, args):
                return None
            if before is not None and not _applicable(after, args):
                return _edited(args.path, before, after)
        elif before is not None and sha256(encoded(before)) == args.expect_sha256:
            return _edited(args.path, before, after)
        raise _undecided(args.path, "is neither as it was nor as the edit leaves it")

    def preview_write(self, args: WriteArgs) -> Preview:
        """Return what a write would change. Raises ProviderError."""
        self._roots.find_for_writing(args.path)
        new = line_count(args.content)
        try:
            before = text_of(args.path, self._now(args.path, args.expect_sha256))
        except ProviderError as exc:
            missing = {Code.FILE_NOT_FOUND, *((Code.FOLDER_NOT_FOUND,) if args.create_folders else ())}
            if exc.code in missing and args.expect_sha256 is None:
                return Preview(what=f"Creates {args.path}, {new}.", diff=whole_diff(args.path, "", args.content))
            if exc.code in {Code.FILE_NOT_TEXT, Code.FILE_TOO_LARGE}:
                return Preview(what=f"Replaces {args.path}, which is not text or too large to compare, by {new}.")
            raise
        if before == args.content:
            return Preview(what=f"Changes nothing: {args.path} already holds this content.")
        what = f"Replaces {args.path}: {line_count(before)} now, {new} afterwards."
        return Preview(what=what, diff=whole_diff(args.path, before, args.content))

    def preview_edit(self, args: EditArgs) -> Preview:
        """Return what an edit would change. Raises ProviderError."""
        self._roots.find_for_writing(args.path)
        before = text_of(args.path, self._now(args.path, args.expect_sha256))
        after = applied(before, args.edits)
        what = f"Edits {args.path}: {line_count(before)} now, {line_count(after)} afterwards."
        return Preview(what=what, diff=whole_diff(args.path, before, after))

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


def _applicable(text: str, args: EditArgs) -> bool:
    try:
        return applied(text, args.edits) != text
    except ProviderError:
        return False


def _undecided(path: str, reason: str) -> ProviderError:
    return ProviderError(f"Whether {path!r} was edited is unknown: it {reason}.", code=Code.OUTCOME_UNKNOWN)


A = TypeVar("A", bound=msgspec.Struct)

_PROVIDER: Final = "builtin"


_tool: Final = partial(declare, provider=_PROVIDER)


TOOLS: Final = (
    _tool("fs.list", "List what a folder holds.", ListArgs, ListResult),
    _tool("fs.read", "Read a text file.", ReadArgs, ReadResult),
    _tool("fs.search", "Find lines in the text files of a folder.", SearchArgs, SearchResult),
    _tool(
        "fs.write",
        "Write a text file, in place of the one that is there, if any. To change part of a file use fs.edit.",
        WriteArgs,
        WriteResult,
        writes=True,
        output_trusted=True,  # it says nothing of what a file held
    ),
    _tool(
        "fs.edit",
        "Change parts of a text file: each edit replaces text that occurs exactly once. All edits are made, or none.",
        EditArgs,
        EditResult,
        writes=True,
        idempotent=False,  # what an edit leaves may well match it again
    ),
)


class FsProvider(Toolset):
    """Reads and writes files below its roots; no path leads out of them, whatever is put on the disk meanwhile.

    With several roots, a path begins with the name of its root. Files and folders in `decisive` decide what agents may
    do, or are run by Remit: no tool changes them. What is in `private` no tool reads either.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        max_read_bytes: int = 2_000_000,
        *,
        decisive: Sequence[Path] = (),
        private: Sequence[Path] = (),
        threads: Threads | None = None,
    ) -> None:
        super().__init__(_PROVIDER, TOOLS)
        checked_roots = Roots(roots, decisive, private)
        self._threads = threads or Threads()
        self._reading = FileReading(checked_roots, max_read_bytes)
        self._writing = FileWriting(checked_roots, max_read_bytes)

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._require(name)
        work = self._work(name, args, ctx)
        return ToolResult(msgspec.to_builtins(await self._threads.stoppable(work)))

    async def reconcile(
        self,
        name: str,
        args: dict[str, Any],
        ctx: CallContext,  # noqa: ARG002 - the port's; a file says more than who asked
    ) -> ToolResult | None:
        """Compare the file with what the call was to leave. Raises ProviderError where that does not settle it."""
        self._require_open()
        outcome: WriteResult | EditResult | None
        if name == "fs.write":
            write = arguments(WriteArgs, args)
            outcome = await self._threads.stoppable(lambda _: self._writing.find_written(write))
        elif name == "fs.edit":
            edit = arguments(EditArgs, args)
            outcome = await self._threads.stoppable(lambda _: self._writing.find_edited(edit))
        else:
            raise ProviderError(f"{name!r} is not a tool that writes.", cause=Code.ToolNotFound)
        return None if outcome is None else ToolResult(msgspec.to_builtins(outcome))

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Compare the file with what a write or an edit would leave. Raises ProviderError."""
        self._require_open()
        if name == "fs.write":
            write = arguments(WriteArgs, args)
            return await self._threads.stoppable(lambda _: self._writing.preview_write(write))
        if name == "fs.edit":
            edit = arguments(EditArgs, args)
            return await self._threads.stoppable(lambda _: self._writing.preview_edit(edit))
        return None

    def slots(self, name: str) -> asyncio.Semaphore:  # noqa: ARG002 - all of them read or write
        return self._threads.slots

    def _work(self, name: str, args: dict[str, Any], ctx: CallContext) -> Callable[[StopEvent], msgspec.Struct]:
        reading, writing, key = self._reading, self._writing, ctx.idempotency_key
        match name:
            case "fs.list":
                return _looker(reading.list, arguments(ListArgs, args), ctx.hidden)
            case "fs.read":
                return _reader(reading.read, arguments(ReadArgs, args))
            case "fs.search":
                return _looker(reading.search, arguments(SearchArgs, args), ctx.hidden)
            case "fs.write":
                return _writer(writing.write, arguments(WriteArgs, args), key)
            case _:  # fs.edit
                return _writer(writing.edit, arguments(EditArgs, args), key)


def _reader(tool: Callable[[A, StopEvent], msgspec.Struct], args: A) -> Callable[[StopEvent], msgspec.Struct]:
    return lambda stop: tool(args, stop)


def _looker(
    tool: Callable[[A, StopEvent, Hidden | None], msgspec.Struct], args: A, hidden: Hidden | None
) -> Callable[[StopEvent], msgspec.Struct]:
    return lambda stop: tool(args, stop, hidden)


def _writer(
    tool: Callable[[A, str, StopEvent], msgspec.Struct], args: A, key: str
) -> Callable[[StopEvent], msgspec.Struct]:
    return lambda stop: tool(args, key, stop)


def open_files(opening: Opening) -> tuple[FsProvider]:
    """The provider of the folders that the settings open."""
    fs_settings = opening.settings.fs
    return (
        FsProvider(
            [Path(root) for root in fs_settings.roots],
            fs_settings.max_read_bytes,
            decisive=opening.decisive,
            private=opening.private,
            threads=opening.threads,
        ),
    )


async def check_folders(look: Look) -> list[Check]:
    """Return whether each root is there, for `remit doctor`."""
    return [_check(root) for root in look.settings.fs.roots]


def _check(root: str) -> Check:
    if not Path(root).is_dir():
        return Check("folder", "fail", f"{root} is not a folder", "Correct fs.roots.")
    if not os.access(root, os.R_OK | os.X_OK):
        return Check("folder", "fail", f"{root} cannot be read", "Give yourself read access, or correct fs.roots.")
    return Check("folder", "ok", root if os.access(root, os.W_OK) else f"{root} (cannot be written to)")
