"""Searching a folder through its index, which is brought up to date first."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import ConfinedDirectory
from remit.files.index import rank
from remit.files.index.refresh import LARGEST, Progress, Refresh
from remit.files.index.store import DamagedError, IndexFile, IndexStore, PassageHit, State
from remit.files.text import ReadableText, Reader, is_prose, readable
from remit.threads import StopEvent

T = TypeVar("T")

_CANDIDATES = 200
"""Passages that the index proposes before the kind of file is weighed in."""
_UNREAD_MOST = 100
"""Files without a text that are named."""


class IndexMatch(NamedTuple):
    """A passage that matches, in a file that is still what was indexed."""

    hit: PassageHit
    score: float
    snippet: str
    page: int | None
    """Of the file, from 1 on; None if it has none."""


class IndexAnswer(NamedTuple):
    """Passages, best first, and what was searched."""

    matches: list[IndexMatch]
    states: dict[State, int]
    """Files in each state."""
    passages: int
    vanished: int
    """Files that were found and are no longer what was indexed."""
    truncated: bool
    unread: list[tuple[str, State]]
    """Files for people that have no text here, a hundred at most, and why."""


class FolderIndex:
    """The files of one folder, as a search sees them."""

    def __init__(
        self,
        index: IndexFile,
        root: ConfinedDirectory,
        folder: Path,
        *,
        read: Reader = readable,
        largest: int = LARGEST,
    ) -> None:
        self._index = index
        self._root = root
        self._name = shown(folder).rpartition("/")[2]
        self._read = read
        self._largest = largest

    def search(
        self,
        query: str,
        limit: int,
        stop: StopEvent,
        progress: Progress,
        allowed: Callable[[str], bool] = lambda _: True,
    ) -> IndexAnswer:
        """The best passages of files whose paths are `allowed`. Raises ProviderError, StoppedError."""

        def attempt() -> IndexAnswer:
            with self._index.opened(stop) as (store, now_ns):
                refresh = Refresh(store, self._root, self._name, now_ns, read=self._read, largest=self._largest)
                truncated = refresh.run(stop, progress)
                expression = rank.expression(query)
                hits = store.hits(expression, _CANDIDATES) if expression else []
                matches, vanished = self._best([hit for hit in hits if allowed(hit.path)], query, limit, stop, store)
                missed = (row for row in store.unread() if is_prose(row[0]) and allowed(row[0]))
                return IndexAnswer(matches, *store.counts(), vanished, truncated, list(islice(missed, _UNREAD_MOST)))

        return _rebuilt_if_damaged(attempt, lambda: self._index.remove(stop))

    def _best(
        self, hits: Sequence[PassageHit], query: str, limit: int, stop: StopEvent, store: IndexStore
    ) -> tuple[list[IndexMatch], int]:
        texts: dict[str, ReadableText | None] = {}
        matches: list[IndexMatch] = []
        for hit in sorted(hits, key=lambda hit: -hit.weight * rank.prior(hit.path)):
            if len(matches) == limit:
                break
            stop.check()
            if hit.path not in texts:
                texts[hit.path] = self._unchanged(hit, store)
            matches += _matches(hit, query, texts[hit.path])
        return matches, sum(text is None for text in texts.values())

    def _unchanged(self, hit: PassageHit, store: IndexStore) -> ReadableText | None:
        """Return what a hit points into, if the file is what the index says; the index alone is never believed."""
        try:
            data = self._root.read(hit.path, self._largest).data
        except ProviderError:
            return None
        if sha256(data) != hit.sha256:
            return None
        return store.text(hit.path) or self._read(hit.path, data)


def shown(folder: Path) -> str:
    """A path as JSON and the index can carry it, whatever bytes it is made of."""
    return os.fsencode(folder).decode(errors="backslashreplace")


def page_at(pages: Sequence[int], position: int) -> int | None:
    """The number of the page, from 1 on, that a position is on; None if there are no pages."""
    return max(1, bisect_right(pages, position)) if pages else None


def _matches(hit: PassageHit, query: str, content: ReadableText | None) -> Iterator[IndexMatch]:
    if content is not None and 0 <= hit.start < hit.end <= len(content.text):
        snippet = rank.snippet(query, content.text[hit.start : hit.end])
        score = round(hit.weight * rank.prior(hit.path), 3)
        yield IndexMatch(hit, score, snippet, page_at(content.pages, hit.start))


def _rebuilt_if_damaged(attempt: Callable[[], T], remove: Callable[[], None]) -> T:
    try:
        return attempt()
    except DamagedError:
        remove()
    try:
        return attempt()
    except DamagedError as exc:
        raise ProviderError(f"The search index cannot be built: {exc}.", code=Code.FILE_IO_FAILED) from exc
