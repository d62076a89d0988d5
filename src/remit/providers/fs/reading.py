"""fs.list, fs.read and fs.search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from remit.blocking import Stop
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError, SchemaError
from remit.files.confined import ConfinedDirectory, Entry, parts_of
from remit.files.replacing import Roots
from remit.files.text import decode
from remit.providers.fs.shapes import (
    ListArgs,
    Listed,
    ListResult,
    Match,
    ReadArgs,
    ReadResult,
    SearchArgs,
    SearchResult,
)
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


class Reading:
    """The reading tools over some roots."""

    def __init__(self, roots: Roots, max_read_bytes: int) -> None:
        self._roots = roots
        self._cap = max_read_bytes

    def list(self, asked: ListArgs, stop: Stop, hidden: Hidden | None = None) -> ListResult:
        """The entries of a folder that could be listed by themselves."""
        items: list[Listed] = []
        for entry in self._entries(asked.path, deep=asked.recursive, enter=lambda _: True):
            stop.check()
            if hidden is not None and hidden("fs.list", {"path": entry.path}):
                continue
            if len(items) == asked.limit:
                return ListResult(items=items, truncated=True)
            items.append(Listed(path=entry.path, kind=entry.kind, bytes=entry.size, modified=entry.mtime_ns // 1_000))
        return ListResult(items=items, truncated=False)

    def read(self, asked: ReadArgs, _stop: Stop) -> ReadResult:
        """The text of a file."""
        root, path, _ = self._roots.find(asked.path)
        data = root.read(path, self._cap).data
        text = decode(data)
        if text is None:
            raise ProviderError(f"{asked.path!r} is not text in a known encoding.", code=Code.FILE_NOT_TEXT)
        return ReadResult(path=asked.path, text=text, bytes=len(data), sha256=sha256(data))

    def search(self, asked: SearchArgs, stop: Stop, hidden: Hidden | None = None) -> SearchResult:
        """The lines that match, in every text file of a folder that could be read or searched by itself."""
        test = _test(asked)
        matches: list[Match] = []
        files = skipped = 0
        for entry in self._entries(asked.path, deep=True, enter=_worth_entering):
            stop.check()
            if entry.kind != "file" or (hidden is not None and _kept_back(hidden, asked, entry.path)):
                continue
            if files + skipped == FILES_MOST:
                return SearchResult(matches=matches, files=files, skipped=skipped, truncated=True)
            text = self._text(entry.path)
            if text is None:
                skipped += 1
                continue
            files += 1
            room = asked.limit - len(matches)
            matches += islice(_matches(entry.path, text, test), room + 1)
            if len(matches) > asked.limit:
                return SearchResult(matches=matches[: asked.limit], files=files, skipped=skipped, truncated=True)
        return SearchResult(matches=matches, files=files, skipped=skipped, truncated=False)

    def _entries(self, path: str, *, deep: bool, enter: Callable[[Entry], bool]) -> Iterator[Entry]:
        """Give what is below a path, named as an agent names it."""
        if self._roots.several and not parts_of(path):
            for name, root in sorted(self._roots.names.items()):
                yield Entry(name, "folder", 0, 0)
                if deep:
                    yield from self._named(root, "", f"{name}/", deep=True, enter=enter)
            return
        root, below, prefix = self._roots.find(path)
        yield from self._named(root, below, prefix, deep=deep, enter=enter)

    def _named(
        self, root: ConfinedDirectory, path: str, prefix: str, *, deep: bool, enter: Callable[[Entry], bool]
    ) -> Iterator[Entry]:
        shown = self._roots.shown(root)
        for entry in root.walk(path, enter=lambda one: deep and shown(one) and enter(one)):
            if shown(entry):
                yield entry._replace(path=prefix + entry.path)

    def _text(self, path: str) -> str | None:
        root, below, _ = self._roots.find(path)
        try:
            return decode(root.read(below, self._cap).data)
        except ProviderError:
            return None


def _kept_back(hidden: Hidden, asked: SearchArgs, path: str) -> bool:
    return hidden("fs.read", {"path": path}) or hidden("fs.search", {"query": asked.query, "path": path})


def _worth_entering(folder: Entry) -> bool:
    return folder.name not in _LEFT_OUT


def _matches(path: str, text: str, test: Test) -> Iterator[Match]:
    for number, line in enumerate(text.split("\n"), 1):
        if test(line):
            yield Match(path=path, line=number, text=line.rstrip("\r")[:LINE_MOST])


def _test(asked: SearchArgs) -> Test:
    """Say whether a line matches. An agent's pattern runs on a linear-time engine: no pattern can hold the process."""
    query = asked.query
    if asked.regex:
        pattern = f"(?i){query}" if asked.ignore_case else query
        try:
            return validator_of({"type": "string", "pattern": pattern}).is_valid
        except SchemaError as exc:
            raise ProviderError(f"{query!r} is not a regular expression this search can run.") from exc
    if asked.ignore_case:
        query = query.casefold()
        return lambda line: query in line.casefold()
    return lambda line: query in line
