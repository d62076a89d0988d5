"""Passages for a report, from files, documents and pages of the web. What fails is left out, and named."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.canonical import sha256
from remit.files.index.passages import cut
from remit.files.index.search import page_at
from remit.recipes.evidence import Piece, best
from remit.recipes.report import Unread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.gateway.outcome import Outcome
    from remit.jobs.run import Run
    from remit.recipes.evidence import Kind

_HITS: Final = 60
_READS_PER_FILE: Final = 4
_RESULTS: Final = 10
"""Of one search on the web."""
_FUSION: Final = 60
"""The constant of reciprocal rank fusion (Cormack and others, 2009)."""
_THIN: Final = 200
"""Characters below which a page has no text to quote."""
_STUB: Final = "stub"
_log: Final = logging.getLogger("remit.web")


class Gathered(NamedTuple):
    """The sources that were read."""

    pieces: list[Piece]
    files: int = 0
    """Files and passages that were searched."""
    passages: int = 0
    documents: int = 0
    """Documents that were searched."""
    results: int = 0
    """Results of the web, and pages of it that were read."""
    pages: int = 0
    unread: tuple[Unread, ...] = ()
    cut: frozenset[str] = frozenset()
    """Pages whose end is missing."""
    note: str = ""
    """The note for a person, such as that nothing was searched."""
    folder: str = ""
    """The real path of the folder."""


async def from_folder(run: Run, folder: str, query: str, wanted: int) -> Gathered:
    """The best passages of a folder's files. Raises CallError where it cannot be searched."""
    found = (await run.call("folder.search", {"folder": folder, "query": query, "limit": _HITS})).value
    read = await _passages(run, "file", "folder.read", {"folder": folder}, found["items"], wanted)
    return read._replace(files=found["files"], passages=found["passages"], folder=found["folder"])


async def from_documents(run: Run, folder: str, query: str, wanted: int) -> Gathered:
    """The best passages of the documents in a folder that is open. Raises CallError where it cannot be searched."""
    hits = (await run.call("doc.search", {"folder": folder, "query": query, "limit": _HITS})).value
    read = await _passages(run, "document", "doc.read", {}, hits["items"], wanted)
    missed = tuple(Unread(each["path"], each["why"]) for each in hits.get("unread", ()))
    return read._replace(documents=hits["files"], note=hits.get("note", ""), unread=(*read.unread, *missed))


async def _passages(
    run: Run, kind: Kind, tool: str, args: dict[str, Any], items: list[dict[str, Any]], wanted: int
) -> Gathered:
    """The passages that a search found, read in parallel; where one cannot be read, the next takes its place."""
    pieces: list[Piece] = []
    unread: list[Unread] = []
    rest = _spread(items)
    while rest and len(pieces) < wanted:
        batch, rest = rest[: wanted - len(pieces)], rest[wanted - len(pieces) :]
        run.progress("reading", len(pieces), wanted)
        outcomes = await run.gather(*(run.attempt(tool, {**args, **_span(item)}) for item in batch))
        for item, outcome in zip(batch, outcomes, strict=True):
            if outcome.ok:
                pieces.append(_passage(kind, item, outcome.value, len(pieces)))
            else:
                unread.append(Unread(item["path"], _why(outcome)))
    return Gathered(pieces, unread=tuple(unread))


async def from_web(run: Run, query: str, queries: Sequence[str], wanted: int, passages: int) -> Gathered:
    """The best `passages` of pages that searches find; where one cannot be read, the next result takes its place.

    Raises CallError if the question itself cannot be searched for.
    """
    run.progress("searching the web")
    asked = [{"query": text, "max_results": _RESULTS} for text in queries]
    lists = await run.gather(run.call("web.search", asked[0]), *(run.attempt("web.search", args) for args in asked[1:]))
    ranked = _fused([items_of(outcome.value) for outcome in lists if outcome.ok])
    offline = [item for item in ranked if item["provider"] == _STUB]
    rest = [item for item in ranked if item["provider"] != _STUB]
    pages = _Pages()
    while rest and len(pages.texts) < wanted:
        batch, rest = rest[: wanted - len(pages.texts)], rest[wanted - len(pages.texts) :]
        run.progress("reading pages", len(pages.texts), wanted)
        outcomes = await run.gather(*(run.attempt("web.extract", {"url": each["url"]}, attempts=1) for each in batch))
        for item, outcome in zip(batch, outcomes, strict=True):
            pages.add(item, outcome)
    return Gathered(
        best(query, pages.pieces, passages),
        results=len(ranked) - len(offline),
        pages=len(pages.texts),
        unread=tuple(pages.unread),
        cut=frozenset(pages.cut),
        note=offline[0]["snippet"] if offline else "",
    )


def items_of(value: Any) -> list[dict[str, Any]]:
    """The items of an answer of web.search; a bare list, as some providers give, is put into their form."""
    if isinstance(value, dict):
        return list(value["items"])
    _log.warning("web.search gave a list, which is an old form: a provider gives {items: [...]}")
    given = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    urls = [str(one.get("url") or one.get("link") or one.get("href") or "") for one in given]
    texts = [str(one.get("snippet") or one.get("content") or one.get("description") or "") for one in given]
    return [
        {"title": str(one.get("title") or ""), "url": url, "snippet": text, "provider": "list", "rank": rank}
        for rank, (one, url, text) in enumerate(zip(given, urls, texts, strict=True), 1)
        if url.startswith(("https://", "http://"))
    ]


class _Pages:
    """The pages that were read, each text once."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.pieces: list[Piece] = []
        self.unread: list[Unread] = []
        self.cut: set[str] = set()

    def add(self, item: dict[str, Any], outcome: Outcome) -> None:
        """Take a page, or note why it is of no use."""
        page = outcome.value if outcome.ok else {}
        if why := self._problem(page, outcome):
            self.unread.append(Unread(item["url"], why))
            return
        rank, url, text = len(self.texts), page["final_url"], page["text"]
        self.texts.add(page["sha256"])
        title = page["title"] or item["title"]
        begins, digest = page.get("pages", []), page["sha256"]
        self.pieces += [
            Piece(
                path=url,
                title=title,
                heading=part.heading,
                start=part.start,
                text=text[part.start : part.end],
                sha256=digest,
                stored=digest,
                stored_at=part.start,
                rank=rank,
                kind="page",
                page=page_at(begins, part.start),
            )
            for part in cut("page.md", text, begins)
        ]
        if page["truncated"]:
            self.cut.add(url)

    def _problem(self, page: dict[str, Any], outcome: Outcome) -> str:
        if not outcome.ok:
            return _why(outcome)
        if page["consent"]:
            return "consent"
        if len(page["text"]) < _THIN:
            return "no_text"
        return "duplicate" if page["sha256"] in self.texts else ""


def _fused(lists: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The results of several searches as one list, each address once, by reciprocal ranks."""
    scores: dict[str, float] = {}
    items: dict[str, dict[str, Any]] = {}
    for results in lists:
        for item in results:
            scores[item["url"]] = scores.get(item["url"], 0.0) + 1 / (_FUSION + item["rank"])
            items.setdefault(item["url"], item)
    return [items[url] for url in sorted(items, key=lambda url: -scores[url])]


def _spread(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results in their order, so many of each file at most."""
    seen: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    for item in items:
        seen[item["path"]] += 1
        if seen[item["path"]] <= _READS_PER_FILE:
            kept.append(item)
    return kept


def _span(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("path", "start", "end", "sha256")}


def _passage(kind: Kind, item: dict[str, Any], read: dict[str, Any], rank: int) -> Piece:
    return Piece(
        path=item["path"],
        title=item["title"],
        heading=item["heading"],
        start=read["start"],
        text=read["text"],
        sha256=read["sha256"],
        stored=sha256(read["text"].encode()),
        rank=rank,
        kind=kind,
        page=item.get("page"),
    )


def _why(outcome: Outcome) -> str:
    return outcome.cause or (outcome.code.name if outcome.code else outcome.status)
