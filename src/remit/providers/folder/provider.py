"""The provider of folder.search and folder.read.

Both only read, and any folder may be named that the process can read: which folder to search is said by the person who
starts the work, not found by an agent. Where an agent chooses the arguments itself, wiring hands in `roots`, or a rule
of the policy decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from remit.canonical import sha256
from remit.capability import Opening
from remit.codes import Code
from remit.errors import ProviderError
from remit.files.directory import ConfinedDirectory, parts_of, unsafe
from remit.files.index.refresh import LARGEST, Progress, is_left_out
from remit.files.index.search import FolderIndex, IndexMatch, shown
from remit.files.index.store import IndexFile
from remit.files.replacement import Closed
from remit.files.text import ReadableText, readable
from remit.threads import StopEvent, Threads
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult, Toolset, arguments, declare

Text = Annotated[str, Meta(min_length=1, max_length=4_096)]
Position = Annotated[int, Meta(ge=0)]


class SearchArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    folder: Annotated[Text, Meta(description="The folder to search; everything below it is looked at.")]
    query: Annotated[Text, Meta(description="A question or words; passages that hold any of them are ranked.")]
    limit: Annotated[int, Meta(ge=1, le=100, description="Passages to return at most.")] = 10


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that matches."""

    path: Annotated[str, Meta(description="The file, below the folder.")]
    title: str
    heading: Annotated[str, Meta(description="The section or definition the passage is part of; may be empty.")]
    start: Annotated[int, Meta(description="First character of the passage in the file's text.")]
    end: Annotated[int, Meta(description="The character after its last.")]
    sha256: Annotated[str, Meta(description="Of the file's bytes.")]
    score: Annotated[float, Meta(description="Comparable within one answer only.")]
    snippet: str


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were not read, by reason."""

    binary: int
    too_large: int
    unreadable: int


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Passages, best first, and what was searched."""

    folder: Annotated[str, Meta(description="The real path of the folder.")]
    items: list[Item]
    files: Annotated[int, Meta(description="Files searched.")]
    passages: Annotated[int, Meta(description="Passages they were cut into.")]
    skipped: Skipped
    truncated: Annotated[bool, Meta(description="Whether the folder holds more files than a search looks at.")]


class ReadArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which passage to read."""

    folder: Annotated[Text, Meta(description="The folder that was searched.")]
    path: Annotated[
        Text, Meta(description="The file, below the folder.", extra_json_schema={"x-remit-below": "folder"})
    ]
    start: Annotated[Position, Meta(description="First character.")] = 0
    end: Annotated[Position | None, Meta(description="The character after the last; without it, to the end.")] = None
    sha256: Annotated[
        str | None, Meta(description="If given, refuse with FILE_CHANGED unless the file still has it.")
    ] = None


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a file's text."""

    path: str
    text: str
    start: int
    end: Annotated[int, Meta(description="The character after the last that was read.")]
    sha256: Annotated[str, Meta(description="Of the file's bytes.")]
    chars: Annotated[int, Meta(description="Characters of the file's whole text.")]


Hidden = Callable[[str, dict[str, Any]], bool]

_PROVIDER: Final = "folder"


TOOLS: Final = (
    declare(
        "folder.search",
        "Find the passages in a folder's text files that answer a question best. Ranked by words, not by meaning: name"
        " the things you look for. Read a result with folder.read.",
        SearchArgs,
        SearchResult,
        provider=_PROVIDER,
        timeout_ms=300_000,  # the first search of a large folder reads all of it
    ),
    declare(
        "folder.read",
        "Read a span of characters of a text file, as folder.search counts them (an HTML page as its text).",
        ReadArgs,
        ReadResult,
        provider=_PROVIDER,
        timeout_ms=30_000,
    ),
)

_SYSTEM: Final = frozenset((name,) for name in ("boot", "dev", "etc", "proc", "run", "sys", "var"))
"""Folders at the top of the disk that hold no notes: keys, devices, other programs' state."""


class FolderSearchProvider(Toolset):
    """Ranks passages of files in a folder, and reads them.

    Indexes are kept in `index_dir`; folders in `roots` only are allowed (None: any); relative ones are below `base`.
    With `anywhere` other folders are allowed too, except for hidden ones and those of the system. What is in `private`
    is neither found nor read.
    """

    def __init__(
        self,
        index_dir: Path,
        *,
        roots: Sequence[Path] | None = None,
        anywhere: bool = False,
        base: Path | None = None,
        private: Sequence[Path] = (),
        threads: Threads | None = None,
    ) -> None:
        super().__init__(_PROVIDER, TOOLS)
        self._private = Closed(private)
        self._anywhere = anywhere
        self._index_dir = index_dir
        self._threads = threads or Threads()
        self._roots = None if roots is None else [root.resolve() for root in roots]
        self._base = base

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        self._require(name)
        if name == "folder.search":
            return await self._search(arguments(SearchArgs, args), ctx)
        return await self._read(arguments(ReadArgs, args), ctx)

    def slots(self, name: str) -> asyncio.Semaphore:  # noqa: ARG002 - both read
        return self._threads.slots

    async def _search(self, args: SearchArgs, ctx: CallContext) -> ToolResult:
        loop = asyncio.get_running_loop()

        def progress(done: int, total: int) -> None:
            loop.call_soon_threadsafe(ctx.progress, done, total, f"read {done:,} of {total:,} files")

        hits = await self._threads.stoppable(lambda stop: self._searched(args, ctx.hidden, stop, progress))
        return ToolResult(msgspec.to_builtins(hits))

    async def _read(self, args: ReadArgs, ctx: CallContext) -> ToolResult:
        passage = await self._threads.stoppable(lambda _: self._passage(args))
        evidence = EvidenceCandidate(
            kind="tool_output",
            source=f"{args.folder.rstrip('/')}/{passage.path}",
            retrieved_at=ctx.now,
            text=passage.text,
            metadata={"sha256": passage.sha256, "start": passage.start, "end": passage.end},
        )
        return ToolResult(msgspec.to_builtins(passage), (evidence,))

    def _searched(self, args: SearchArgs, hidden: Hidden | None, stop: StopEvent, progress: Progress) -> SearchResult:
        folder, root = self._folder(args.folder)

        def allowed(path: str) -> bool:
            kept_back = hidden is not None and hidden("folder.read", {"folder": args.folder, "path": path})
            return not kept_back and not self._is_private(folder, path)

        index = FolderIndex(IndexFile(self._index_dir, folder), root, folder)
        results = index.search(args.query, args.limit, stop, progress, allowed)
        files = results.states.get("text", 0)
        if files == 0:
            raise ProviderError(f"{args.folder!r} holds no file that can be read as text.", code=Code.FOLDER_EMPTY)
        skipped = Skipped(
            binary=results.states.get("binary", 0),
            too_large=results.states.get("too_large", 0),
            unreadable=results.states.get("unreadable", 0) + results.vanished,
        )
        return SearchResult(
            folder=shown(folder),
            items=[_item(match) for match in results.matches],
            files=files,
            passages=results.passages,
            skipped=skipped,
            truncated=results.truncated,
        )

    def _is_private(self, folder: Path, path: str) -> bool:
        return "/".join((str(folder), *parts_of(path))) in self._private

    def _passage(self, args: ReadArgs) -> ReadResult:
        folder, root = self._folder(args.folder)
        if any(is_left_out(part) for part in parts_of(args.path)):
            raise unsafe(args.path, "is hidden or was installed; no search returns it, so it is not read")
        if self._is_private(folder, args.path):
            raise unsafe(args.path, "belongs to Remit itself")
        digest, content = _content(root, args.path)
        if args.sha256 is not None and args.sha256 != digest:
            raise ProviderError(f"{args.path!r} changed since it was searched; search again.", code=Code.FILE_CHANGED)
        size = len(content.text)
        start = min(args.start, size)
        end = size if args.end is None else max(start, min(args.end, size))
        text = content.text[start:end]
        return ReadResult(path=args.path, text=text, start=start, end=end, sha256=digest, chars=size)

    def _folder(self, named: str) -> tuple[Path, ConfinedDirectory]:
        """The real path of a folder, and the folder. Raises ProviderError where it is not there or not allowed."""
        try:
            folder = ((self._base or Path.cwd()) / Path(named).expanduser()).resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as exc:  # links in a circle, an unknown user, no path at all
            raise ProviderError(f"The folder {named!r} does not exist.", code=Code.FOLDER_NOT_FOUND) from exc
        if self._roots is None:
            return folder, ConfinedDirectory(folder)
        for root in self._roots:
            if folder.is_relative_to(root):
                inside = folder.relative_to(root).parts
                if any(map(is_left_out, inside)):
                    raise unsafe(named, "is hidden or was installed; no search enters it")
                return folder, ConfinedDirectory(root, inside)
        if self._anywhere:
            if any(part.startswith(".") for part in folder.parts) or folder.parts[1:2] in _SYSTEM:
                message = f"The folder {named!r} is hidden, or the system's: only a root in fs.roots opens it."
                raise ProviderError(message, code=Code.PATH_NOT_ALLOWED)
            return folder, ConfinedDirectory(folder)
        raise ProviderError(f"The folder {named!r} lies outside the folders allowed here.", code=Code.PATH_NOT_ALLOWED)


def _item(match: IndexMatch) -> Item:
    hit = match.hit
    return Item(
        path=hit.path,
        title=hit.title,
        heading=hit.heading,
        start=hit.start,
        end=hit.end,
        sha256=hit.sha256,
        score=match.score,
        snippet=match.snippet,
    )


def _content(root: ConfinedDirectory, path: str) -> tuple[str, ReadableText]:
    data, _ = root.read(path, LARGEST)
    content = readable(path, data)
    if content is None:
        raise ProviderError(f"{path!r} is not text.", code=Code.FILE_NOT_TEXT)
    return sha256(data), content


def open_search(opening: Opening) -> tuple[FolderSearchProvider]:
    """The provider of search; its indexes lie beside the project's journal, since they can be made again."""
    settings = opening.settings
    return (
        FolderSearchProvider(
            settings.folder / ".remit" / "cache",
            roots=[Path(root) for root in settings.fs.roots],
            anywhere=settings.fs.search_anywhere,
            base=settings.folder,
            private=opening.private,
            threads=opening.threads,
        ),
    )
