"""The recipe research_report: a question, a folder, and an answer made of only verified quotations."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from remit.gateway.outcome import Outcome
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.recipes.evidence import Piece, choose, verified
from remit.recipes.report import Searched, compose

_HITS: Final = 60
_READS_PER_SOURCE: Final = 3
_READS_PER_FILE: Final = 4
_SOURCES_MOST: Final = 20


@recipe("research_report", version="2")
async def research_report(run: Run, query: str, folder: str, max_sources: int = 5) -> dict[str, Any]:
    """Answer `query` from the text files in `folder`, with verbatim quotations from at most `max_sources` of them.

    Returns {query, report (Markdown), evidence [{n, text, source, start, end, sha256}], sources [{n, path, sha256,
    title}], evidence_count, searched {files, passages}}; `source` is the n of a source, `start` and `end` count
    characters in its text. If nothing answers the question, the report says so. `claims` is the old name of `evidence`.
    """
    max_sources = max(1, min(max_sources, _SOURCES_MOST))
    run.progress("searching")
    found = (await run.call("folder.search", {"folder": folder, "query": query, "limit": _HITS})).value
    pieces = await _read(run, folder, _spread(found["items"]), _READS_PER_SOURCE * max_sources)
    run.progress("choosing quotations")
    called = found["folder"].rpartition("/")[2]
    claims = verified(choose(query, pieces, max_sources=max_sources, folder=called))
    return compose(query, found["folder"], claims, Searched(files=found["files"], passages=found["passages"]))


def _spread(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results in their order, so many of each file at most."""
    seen: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    for item in items:
        seen[item["path"]] += 1
        if seen[item["path"]] <= _READS_PER_FILE:
            kept.append(item)
    return kept


async def _read(run: Run, folder: str, items: list[dict[str, Any]], wanted: int) -> list[Piece]:
    """The best passages, read in parallel; where one cannot be read, the next result takes its place."""
    pieces: list[Piece] = []
    rest = items
    while rest and len(pieces) < wanted:
        batch, rest = rest[: wanted - len(pieces)], rest[wanted - len(pieces) :]
        run.progress("reading", len(pieces), wanted)
        outcomes = await run.gather(*(_read_one(run, folder, item) for item in batch))
        pieces += [_piece(item, outcome) for item, outcome in zip(batch, outcomes, strict=True) if outcome.ok]
    return pieces


async def _read_one(run: Run, folder: str, item: dict[str, Any]) -> Outcome:
    span = {name: item[name] for name in ("path", "start", "end", "sha256")}
    return await run.attempt("folder.read", {"folder": folder, **span})


def _piece(item: dict[str, Any], outcome: Outcome) -> Piece:
    read = outcome.value
    return Piece(item["path"], item["title"], item["heading"], read["start"], read["text"], read["sha256"])
