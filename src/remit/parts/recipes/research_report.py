"""The recipe research_report: a question, where to look, and an answer of which every part is quoted."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.codes import Code
from remit.errors import RunError
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.parts.recipes.evidence import choose, verified
from remit.parts.recipes.gather import (
    Gathered,
    ProvenAnswer,
    from_documents,
    from_folder,
    from_web,
    keywords,
    planned,
    written,
)
from remit.parts.recipes.report import ReportFacts, Searched, compose

_PASSAGES_PER_SOURCE: Final = 3
_PAGES_PER_SOURCE: Final = 2
_SOURCES_MOST: Final = 20


@recipe("research_report", version="4")
async def research_report(
    run: Run,
    query: str,
    folder: str = "",
    max_sources: int = 5,
    web: bool = False,
    model: str = "",
    documents: str = "",
) -> dict[str, Any]:
    """Answer `query` from files in `folder`, from `documents`, from the `web`, or from all, with sources quoted.

    `folder` is any folder with text files. `documents` is a folder that is open to agents, and `.` all of it: PDF and
    Word documents, notebooks and text in it are read. At most `max_sources` are quoted in all.

    Without a `model` the report is made of verbatim quotations. With one, a model writes sentences, and each carries
    the words of a source that say so; those that no source holds word for word are dropped and counted.

    Returns {query, report (Markdown), evidence [{n, text, source, source_index, start, end, sha256, stored, page,
    claim, …}], sources [{n, kind, path, sha256, title, truncated}], evidence_count, searched, unread [{path, why}],
    dropped, artifacts [{path, bytes, sha256, media_type}]}; `start` and `end` count characters in the source's text,
    and `stored` {sha256, start, end} is the same place in a text that the record keeps. The files report.md,
    report.json and report.html are the job's artifacts. If nothing answers, the report says so. `claims` is the old
    name of `evidence`.
    """
    if not (folder or web or documents):
        remedy = "Name a folder, or documents, or look in the web."
        raise RunError("nothing to look in", code=Code.INVALID_INPUT, remedy=remedy)
    max_sources = max(1, min(max_sources, _SOURCES_MOST))
    passages, wanted = _PASSAGES_PER_SOURCE * max_sources, _PAGES_PER_SOURCE * max_sources
    files = await from_folder(run, folder, query, passages) if folder else Gathered([])
    papers = await from_documents(run, documents, query, passages) if documents else Gathered([])
    queries = [] if not web else await planned(run, query, model) if model else keywords(query)
    pages = await from_web(run, query, queries, wanted, passages) if web else Gathered([])
    run.progress("choosing quotations")
    pieces = [*files.pieces, *papers.pieces, *pages.pieces]
    called = files.folder.rpartition("/")[2]
    claims = verified(choose(query, pieces, max_sources=max_sources, folder=called))
    answer = await written(run, query, model, claims) if model and claims else ProvenAnswer([], 0)
    facts = ReportFacts(
        query=query,
        searched=Searched(
            folder=files.folder,
            files=files.files,
            passages=files.passages,
            queries=list(queries),
            results=pages.results,
            pages=pages.pages,
            looked_in=documents,
            documents=papers.documents,
        ),
        unread=[*files.unread, *papers.unread, *pages.unread],
        model=model if answer.claims else "",
        dropped=answer.dropped,
        note=" ".join(filter(None, (papers.note, pages.note))),
    )
    report: dict[str, Any] = msgspec.to_builtins(compose(facts, answer.claims or claims, pages.cut))
    files_written = await run.call("report.write", {"report": report})
    return {**report, "claims": report["evidence"], "artifacts": files_written.value["artifacts"]}
