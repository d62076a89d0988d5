"""The check of a report against the record: who wrote its bytes, and where each quotation of it stands there.

The service that it asks (`remit.service.service.Service`, here or of a server) stands above recipes, and is handed in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from remit.canonical import sha256
from remit.errors import ChainBrokenError, PayloadErasedError, RecordPrunedError
from remit.evidence.answer import CheckAnswer, Verdict
from remit.parts.recipes.report import Report
from remit.record.search import JobSearch

_RECIPE: Final = "research_report"
_FILES: Final = ("report.md", "report.json", "report.html")
_LONGEST: Final = 64 << 20
_PAGE: Final = 100
_GONE: Final = (PayloadErasedError, RecordPrunedError, ChainBrokenError)


def reader_of(file: Path) -> Callable[[Any], Awaitable[CheckAnswer]] | None:
    """Return the check of a file that looks like a report; None: it is none. Raise OSError."""
    if file.suffix not in (".md", ".json", ".html") or not file.is_file() or file.stat().st_size > _LONGEST:
        return None
    data = file.read_bytes()
    if file.suffix == ".json":
        try:
            msgspec.json.decode(data, type=Report)
        except (msgspec.DecodeError, RecursionError):
            return None
    # Any text can be Markdown or a page: of one that no job wrote, nothing says that it was a report.
    return partial(_answer, sha256(data), "invalid" if file.suffix == ".json" else "undecidable")


async def _answer(digest: str, unknown: Verdict, service: Any) -> CheckAnswer:
    async for job in _jobs(service):
        try:
            files = {row.path: row.sha256 for row in await service.artifacts.rows(job) if row.path in _FILES}
            if digest in files.values():
                report = msgspec.json.decode(await service.artifacts.read(job, files["report.json"]), type=Report)
                return _compared(job, report, await _texts(service, job))
        except _GONE as error:
            return CheckAnswer(
                "undecidable", "record_gone", f"what {job} rests on is not kept any more: {error.message}"
            )
        except (KeyError, msgspec.DecodeError):
            return CheckAnswer("undecidable", "report_old", f"{job} wrote it, with an older Remit that kept no places")
    reason = f"no {_RECIPE} in this journal wrote these bytes: they were changed since, or the journal is another"
    return CheckAnswer(unknown, "report_unknown", reason)


async def _jobs(service: Any) -> AsyncIterator[str]:
    """Every completed job of the recipe, the newest first."""
    before: str | None = ""
    while before is not None:
        wanted = JobSearch(states=("completed",), text=_RECIPE, before=before, limit=_PAGE)
        page = await service.jobs.search(wanted)
        for row in page.rows:
            if row.name == _RECIPE:
                yield row.job
        before = page.next


async def _texts(service: Any, job: str) -> dict[str, str]:
    """The texts that the steps of a job gave, by their digests."""
    texts: dict[str, str] = {}
    for row in (await service.jobs.view(job)).steps:
        for text in _strings((await service.steps.view(job, row.step)).value):
            texts[sha256(text.encode())] = text
    return texts


def _strings(value: Any) -> list[str]:
    """Every text in a JSON value; a result of the record is nested no deeper than the gate let it."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _strings(part)]


def _compared(job: str, report: Report, texts: dict[str, str]) -> CheckAnswer:
    count = len(report.evidence)
    for each in report.evidence:
        text, place = texts.get(each.stored.sha256), each.stored
        if text is None:
            return CheckAnswer(
                "invalid", "source_unknown", f"no step of {job} gave the text of quotation {each.n}", count
            )
        if text[place.start : place.end] != each.text:
            return CheckAnswer(
                "invalid", "quotation_differs", f"{job} read something else for quotation {each.n}", count
            )
    return CheckAnswer(
        "valid", None, f"{job} wrote it, and each of its {count} quotations stands in what it read", count
    )
