"""The provider of the document tools.

doc.read and doc.search.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from remit.canonical import sha256
from remit.capability import Opening
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import ConfinedDirectory, parts_of, unsafe
from remit.files.index.refresh import Progress, is_left_out
from remit.files.index.search import FolderIndex, IndexMatch
from remit.files.index.store import IndexFile, State
from remit.files.outline import title_of
from remit.files.parse_job import Parsed
from remit.files.replacement import Roots
from remit.parts.documents.documents import Ask, Documents
from remit.parts.documents.edit import Editing, KeptContents
from remit.parts.documents.settings import DocumentSettings
from remit.parts.documents.shapes import (
    ApplyArgs,
    ApplyResult,
    Item,
    Page,
    Proposal,
    ProposeArgs,
    ReadArgs,
    ReadResult,
    SearchArgs,
    SearchResult,
    Skipped,
    UndoArgs,
    Unread,
    Why,
)
from remit.threads import StopEvent, Threads
from remit.tools.provider import CallContext, EvidenceCandidate, Preview, ToolResult, Toolset, arguments, declare

Hidden = Callable[[str, dict[str, Any]], bool]
_NO_PDF: Final = "PDF files are left out: pypdfium2 is not installed (pip install 'remit[documents]')."
_WHY: Final[dict[State, Why]] = {"binary": "no_text", "too_large": "too_large", "unreadable": "unreadable"}
_ANCHORS: Final = 1_000
"""Pages whose places are returned at most."""


class DocumentReading:
    """The reading tools over some roots."""

    def __init__(self, roots: Roots, documents: Documents, index_of: Callable[[Path], IndexFile]) -> None:
        self._roots = roots
        self._documents = documents
        self._index_of = index_of

    def read(self, args: ReadArgs, ask: Ask) -> ReadResult:
        """The text of a document."""
        root, path, _ = self._roots.find(args.path)
        data = root.read(path, self._documents.max_bytes).data
        digest = sha256(data)
        if args.sha256 not in {None, digest}:
            raise ProviderError(f"{args.path!r} is not the document that was expected.", code=Code.FILE_CHANGED)
        documents = self._documents
        document = documents.source(path, data) if args.source else documents.open(args.path, data, ask)
        parsed = document.parsed
        start, end = _span(args, parsed)
        text = parsed.text[start:end]
        return ReadResult(
            path=args.path,
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
        self, args: SearchArgs, ask: Ask, hidden: Hidden | None, stop: StopEvent, progress: Progress
    ) -> SearchResult:
        """The best passages of documents that could be read by themselves."""
        root, below, prefix = self._roots.find(args.folder)
        inside = parts_of(below)
        if any(map(is_left_out, inside)):
            raise unsafe(args.folder, "is hidden or was installed; no search enters it")
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
        hits = index.search(args.query, args.limit, stop, progress, allowed)
        skipped = Skipped(
            no_text=hits.states.get("binary", 0),
            too_large=hits.states.get("too_large", 0),
            unreadable=hits.states.get("unreadable", 0) + hits.vanished,
        )
        return SearchResult(
            items=[_item(prefix, match) for match in hits.matches],
            files=hits.states.get("text", 0),
            passages=hits.passages,
            skipped=skipped,
            unread=[Unread(path=prefix + path, why=_WHY[state]) for path, state in hits.unread],
            truncated=hits.truncated,
            note=_NO_PDF if skipped.no_text and not self._documents.reads_pdf else "",
        )


def _item(prefix: str, match: IndexMatch) -> Item:
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


def _span(args: ReadArgs, parsed: Parsed) -> tuple[int, int]:
    """Return which characters to return. Raises ProviderError for pages that are not there."""
    size = len(parsed.text)
    first, last = _pages(args, parsed)
    start = max(args.start, first)
    end = min(last, size if args.end is None else args.end, start + args.max_chars)
    return min(start, size), max(start, end)


def _pages(args: ReadArgs, parsed: Parsed) -> tuple[int, int]:
    """Return where the pages that were named begin and end."""
    size = len(parsed.text)
    if not args.pages:
        return 0, size
    first, dash, last = args.pages.partition("-")
    begin, until = int(first), int(last or parsed.page_count) if dash else int(first)
    if begin > len(parsed.pages):
        reason = f"has {parsed.page_count:,} pages" if parsed.page_count else "has no pages"
        raise ProviderError(f"{args.path!r} {reason}; page {begin:,} cannot be read. {parsed.note}".strip())
    return parsed.pages[begin - 1], parsed.pages[until] if until < len(parsed.pages) else size


def _anchors(pages: tuple[int, ...], start: int, end: int) -> list[Page]:
    """The pages that a span is on."""
    first = max(0, bisect_right(pages, start) - 1)
    numbers = range(first, min(len(pages), first + _ANCHORS))
    return [Page(page=number + 1, start=pages[number]) for number in numbers if pages[number] < max(end, start + 1)]


_PROVIDER: Final = "doc"


_reader: Final = partial(declare, provider=_PROVIDER, timeout_ms=60_000, output_trusted=False)
"""Anyone may have written a document."""
_writer: Final = partial(declare, provider=_PROVIDER, timeout_ms=60_000, writes=True, output_trusted=True)
"""A change is made to one content only; what it returns says nothing of what a file held."""


TOOLS: Final = (
    _reader(
        "doc.read",
        "Read a document: PDF, DOCX, PPTX, XLSX, EPUB, HTML, Markdown, text, CSV or a notebook, or pages of it.",
        ReadArgs,
        ReadResult,
    ),
    _reader(
        "doc.search",
        "Find the passages in a folder's documents that answer a question best. Ranked by words, not by meaning: name"
        " the things you look for. Read a result with doc.read.",
        SearchArgs,
        SearchResult,
        timeout_ms=300_000,  # the first search of a large folder reads all of it
    ),
    _reader(
        "doc.propose_edit",
        "Show what a change to a text file would do, and change nothing. Each edit replaces text that occurs exactly"
        " once; or give the whole new content.",
        ProposeArgs,
        Proposal,
    ),
    _writer(
        "doc.apply_edit",
        "Make a change that doc.propose_edit showed, if the file is still the same. The earlier content is kept.",
        ApplyArgs,
        ApplyResult,
    ),
    _writer(
        "doc.undo_edit",
        "Bring back the content that a file had before doc.apply_edit, if the file is still as that left it.",
        UndoArgs,
        ApplyResult,
    ),
)


class DocProvider(Toolset):
    """Reads, searches and edits documents below its roots."""

    def __init__(
        self,
        roots: Roots,
        settings: DocumentSettings,
        *,
        index_dir: Path,
        undo_dir: Path,
        threads: Threads | None = None,
    ) -> None:
        super().__init__(_PROVIDER, TOOLS)
        self._threads = threads or Threads()
        self._documents = Documents(settings)
        self._reading = DocumentReading(
            roots, self._documents, lambda folder: IndexFile(index_dir, folder, self._documents.kind)
        )
        self._editing = Editing(roots, settings.max_bytes, KeptContents(undo_dir, settings.undo))

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Call a tool. Raises ProviderError."""
        self._require(name)
        work = self._work(name, args, ctx)
        value = await self._threads.stoppable(work)
        return ToolResult(msgspec.to_builtins(value), _evidence(value, ctx))

    async def reconcile(
        self,
        name: str,
        args: dict[str, Any],
        ctx: CallContext,  # noqa: ARG002 - the port's; a file says more than who asked
    ) -> ToolResult | None:
        """Compare the file with what the call was to leave. Raises ProviderError where that does not settle it."""
        self._require_open()
        apply_result: ApplyResult | None
        if name == "doc.apply_edit":
            apply = arguments(ApplyArgs, args)
            apply_result = await self._threads.stoppable(lambda _: self._editing.find_applied(apply))
        elif name == "doc.undo_edit":
            undo = arguments(UndoArgs, args)
            apply_result = await self._threads.stoppable(lambda _: self._editing.find_undone(undo))
        else:
            raise ProviderError(f"{name!r} is not a tool that writes.", cause=Code.ToolNotFound)
        return None if apply_result is None else ToolResult(msgspec.to_builtins(apply_result))

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Compare the file with what a change or an undo would leave. Raises ProviderError."""
        self._require_open()
        if name == "doc.apply_edit":
            apply = arguments(ApplyArgs, args)
            return await self._threads.stoppable(lambda _: self._editing.preview_apply(apply))
        if name == "doc.undo_edit":
            undo = arguments(UndoArgs, args)
            return await self._threads.stoppable(lambda _: self._editing.preview_undo(undo))
        return None

    def slots(self, name: str) -> asyncio.Semaphore:  # noqa: ARG002 - all of them read or write
        """Those of the threads."""
        return self._threads.slots

    async def close(self) -> None:
        await super().close()
        await self._documents.close()

    def _work(self, name: str, args: dict[str, Any], ctx: CallContext) -> Callable[[StopEvent], msgspec.Struct]:
        reading, editing, key = self._reading, self._editing, ctx.idempotency_key
        loop = asyncio.get_running_loop()

        def asker(stop: StopEvent) -> Ask:
            return self._documents.asker(loop, stop)

        def progress(done: int, total: int) -> None:
            loop.call_soon_threadsafe(ctx.progress, done, total, f"read {done:,} of {total:,} documents")

        match name:
            case "doc.read":
                read = arguments(ReadArgs, args)
                return lambda stop: reading.read(read, asker(stop))
            case "doc.search":
                search = arguments(SearchArgs, args)
                return lambda stop: reading.search(search, asker(stop), ctx.hidden, stop, progress)
            case "doc.propose_edit":
                propose = arguments(ProposeArgs, args)
                if ctx.hidden is not None and ctx.hidden("doc.read", {"path": propose.path}):
                    raise unsafe(propose.path, "is kept from you by a rule; a diff would show what it holds")
                return lambda _: editing.propose(propose)
            case "doc.apply_edit":
                apply = arguments(ApplyArgs, args)
                return lambda stop: editing.apply(apply, key, stop)
            case _:  # doc.undo_edit
                undo = arguments(UndoArgs, args)
                return lambda stop: editing.undo(undo, key, stop)


def _evidence(value: msgspec.Struct, ctx: CallContext) -> tuple[EvidenceCandidate, ...]:
    """Return the text that was read, as evidence."""
    if not isinstance(value, ReadResult):
        return ()
    span = {"sha256": value.sha256, "start": value.start, "end": value.end}
    if value.pages:
        span["page"] = value.pages[0].page
    return (
        EvidenceCandidate(
            kind="tool_output", source=value.path, retrieved_at=ctx.now, text=value.text, metadata=dict(span)
        ),
    )


def open_documents(opening: Opening) -> tuple[DocProvider]:
    """The provider of documents in the folders that the settings open; what it keeps lies beside the journal."""
    own = opening.settings.folder / ".remit"
    roots = Roots([Path(root) for root in opening.settings.fs.roots], opening.decisive, opening.private)
    return (
        DocProvider(
            roots,
            cast("DocumentSettings", opening.part),
            index_dir=own / "cache",
            undo_dir=own / "undo",
            threads=opening.threads,
        ),
    )
