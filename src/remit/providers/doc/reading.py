"""doc.read and doc.search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from remit.blocking import Stop
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.confined import ConfinedDirectory, parts_of, unsafe
from remit.files.index.refresh import Progress, is_left_out
from remit.files.index.search import FolderIndex, Match
from remit.files.index.store import Index, State
from remit.files.outline import title_of
from remit.files.parsed import Parsed
from remit.files.roots import Roots
from remit.providers.doc.documents import Ask, Documents
from remit.providers.doc.shapes import Item, Page, ReadArgs, ReadResult, SearchArgs, SearchResult, Skipped, Unread, Why

Hidden = Callable[[str, dict[str, Any]], bool]
_NO_PDF: Final = "PDF files are left out: pypdfium2 is not installed (pip install 'remit[documents]')."
_WHY: Final[dict[State, Why]] = {"binary": "no_text", "too_large": "too_large", "unreadable": "unreadable"}
_ANCHORS: Final = 1_000
"""Pages whose places are returned at most."""


class Reading:
    """The reading tools over some roots."""

    def __init__(self, roots: Roots, documents: Documents, index_of: Callable[[Path], Index]) -> None:
        self._roots = roots
        self._documents = documents
        self._index_of = index_of

    def read(self, asked: ReadArgs, ask: Ask) -> ReadResult:
        """The text of a document."""
        root, path, _ = self._roots.find(asked.path)
        data = root.read(path, self._documents.max_bytes).data
        digest = sha256(data)
        if asked.sha256 not in {None, digest}:
            raise ProviderError(f"{asked.path!r} is not the document that was expected.", code=Code.FILE_CHANGED)
        documents = self._documents
        document = documents.source(path, data) if asked.source else documents.open(asked.path, data, ask)
        parsed = document.parsed
        start, end = _span(asked, parsed)
        text = parsed.text[start:end]
        return ReadResult(
            path=asked.path,
            format=document.format,
            title=parsed.title or title_of(path, parsed.text),
            text=text,
            start=start,
            end=start + len(text),
            chars=len(parsed.text),
            page_count=parsed.page_count,
            pages=_anchors(parsed.pages, start, start + len(text)),
            truncated=parsed.truncated,
            note=parsed.note,
            sha256=digest,
        )

    def search(
        self, asked: SearchArgs, ask: Ask, hidden: Hidden | None, stop: Stop, progress: Progress
    ) -> SearchResult:
        """The best passages of documents that could be read by themselves."""
        root, below, prefix = self._roots.find(asked.folder)
        inside = parts_of(below)
        if any(map(is_left_out, inside)):
            raise unsafe(asked.folder, "is hidden or was installed; no search enters it")
        prefix += "".join(f"{part}/" for part in inside)

        def allowed(path: str) -> bool:
            try:
                self._roots.find(prefix + path)
            except ProviderError:
                return False
            return hidden is None or not hidden("doc.read", {"path": prefix + path})

        folder = Path(root.root, *inside)
        index = FolderIndex(
            self._index_of(folder),
            ConfinedDirectory(root.root, inside),
            folder,
            read=self._documents.reader(ask),
            largest=self._documents.max_bytes,
        )
        found = index.search(asked.query, asked.limit, stop, progress, allowed)
        skipped = Skipped(
            no_text=found.states.get("binary", 0),
            too_large=found.states.get("too_large", 0),
            unreadable=found.states.get("unreadable", 0) + found.vanished,
        )
        return SearchResult(
            items=[_item(prefix, match) for match in found.matches],
            files=found.states.get("text", 0),
            passages=found.passages,
            skipped=skipped,
            unread=[Unread(path=prefix + path, why=_WHY[state]) for path, state in found.unread],
            truncated=found.truncated,
            note=_NO_PDF if skipped.no_text and not self._documents.reads_pdf else "",
        )


def _item(prefix: str, match: Match) -> Item:
    hit = match.hit
    return Item(
        path=prefix + hit.path,
        title=hit.title,
        heading=hit.heading,
        page=match.page,
        start=hit.start,
        end=hit.end,
        sha256=hit.sha256,
        score=match.score,
        snippet=match.snippet,
    )


def _span(asked: ReadArgs, parsed: Parsed) -> tuple[int, int]:
    """Return which characters to return. Raises ProviderError for pages that are not there."""
    size = len(parsed.text)
    first, last = _pages(asked, parsed)
    start = max(asked.start, first)
    end = min(last, size if asked.end is None else asked.end, start + asked.max_chars)
    return min(start, size), max(start, end)


def _pages(asked: ReadArgs, parsed: Parsed) -> tuple[int, int]:
    """Return where the pages that were named begin and end."""
    size = len(parsed.text)
    if not asked.pages:
        return 0, size
    first, dash, last = asked.pages.partition("-")
    begin, until = int(first), int(last or parsed.page_count) if dash else int(first)
    if begin > len(parsed.pages):
        why = f"has {parsed.page_count:,} pages" if parsed.page_count else "has no pages"
        raise ProviderError(f"{asked.path!r} {why}; page {begin:,} cannot be read. {parsed.note}".strip())
    return parsed.pages[begin - 1], parsed.pages[until] if until < len(parsed.pages) else size


def _anchors(pages: tuple[int, ...], start: int, end: int) -> list[Page]:
    """The pages that a span is on."""
    first = max(0, bisect_right(pages, start) - 1)
    found = range(first, min(len(pages), first + _ANCHORS))
    return [Page(page=number + 1, start=pages[number]) for number in found if pages[number] < max(end, start + 1)]
