"""The report about a record: each duty, the events that answer it, what is not recorded, and how long it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal

import msgspec

from remit.audit.document import document
from remit.audit.duties import DUTIES, Duty
from remit.clock import isoformat
from remit.evidence.verify import counted
from remit.pages.page import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from remit.audit.facts import Counts

_SIX_MONTHS: Final = 183
"""Days that logs of a high-risk system are kept at least (AI Act, articles 19 and 26)."""
_TITLE: Final = "Record-keeping"
_PRUNED: Final = "stream_pruned"
"""The kind that stands for the events of a whole stream, which are counted no more."""
_UNREAD: Final = "`audit.reads` is off: who reads over HTTP and on pages, and exports, is not recorded."
_DISCLAIMER: Final = (
    "Made from the record; it proves nothing by itself: evidence packages do. Whether a system falls under a duty, and "
    "whether a record is enough for it, is not said here."
)


class DutyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A duty, answered."""

    source: str
    clause: str
    duty: str
    answer: Literal["recorded", "partly", "not recorded"]
    events: int
    """Events that answer it."""
    details: tuple[str, ...]
    """The kinds with their numbers, and how many events have which field."""
    gaps: tuple[str, ...]
    """The parts that are not recorded."""


class KeptRow(msgspec.Struct, frozen=True, kw_only=True):
    """How long something is kept."""

    what: str
    kept: str
    enough: bool
    """Whether that is six months at least."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report about a record."""

    since: int
    """Microseconds since the Unix epoch; 0: everything that is recorded."""
    until: int | None
    made_at: int
    events: int
    duties: tuple[DutyRow, ...]
    kept: tuple[KeptRow, ...]


class ReportView(View, frozen=True, kw_only=True):
    """The report as a file."""

    template: ClassVar[str] = "report.html"
    report: Report
    sources: tuple[tuple[str, tuple[DutyRow, ...]], ...]
    when: str
    note: str


def duty_rows(counts: Counts, *, reads: bool) -> tuple[DutyRow, ...]:
    """Answer every duty from what was counted; `reads`: whether reads are recorded."""
    return tuple(_row(duty, counts.kinds, counts.fields, reads=reads) for duty in DUTIES)


def _row(duty: Duty, kinds: Mapping[str, int], fields: Mapping[str, int], *, reads: bool) -> DutyRow:
    numbers = {kind: kinds[kind] for kind in duty.kinds or sorted(kinds) if kinds.get(kind)}
    events, gaps, lacking = sum(numbers.values()), list[str](), False
    details = [f"{number:,} {kind}" for kind, number in numbers.items() if duty.kinds or kind == _PRUNED]
    if not duty.kinds and numbers:
        details.insert(0, counted(len(numbers), "kind"))
    for field in (*duty.every, *duty.some):
        kind, _, name = field.partition(".")
        if number := kinds.get(kind, 0):
            details.append(f"{name} on {fields.get(field, 0):,} of {number:,} {kind}")
            if field in duty.every and fields.get(field, 0) < number:
                lacking = True
                gaps.append(f"{number - fields.get(field, 0):,} of {number:,} {kind} have no {name}.")
    unread = "output_read" in duty.kinds and not reads
    gaps += [_UNREAD] if unread else []
    gaps += [duty.gap] if duty.gap else []
    answer: Literal["recorded", "partly", "not recorded"]
    answer = "not recorded" if not events else "partly" if lacking or unread or duty.gap else "recorded"
    if not events:
        gaps.insert(0, f"No event in this time: {', '.join(duty.kinds) or 'of any kind'}.")
    return DutyRow(
        source=duty.source, clause=duty.clause, duty=duty.duty, answer=answer, events=events, details=tuple(details),
        gaps=tuple(gaps),
    )  # fmt: skip


def kept_rows(rules: Sequence[tuple[str, int]], evidence_days: int) -> tuple[KeptRow, ...]:
    """Say how long events and evidence are kept, by the rules (which records, days) and settings in force."""
    events = [
        KeptRow(what=f"events of {what}", kept=f"{days} days", enough=days >= _SIX_MONTHS) for what, days in rules
    ]
    rest = "everything else that is recorded" if events else "events, values and digests"
    evidence = f"{evidence_days} days" if evidence_days else "for good"
    enough = not evidence_days or evidence_days >= _SIX_MONTHS
    return (
        *events,
        KeptRow(what=rest, kept="for good", enough=True),
        KeptRow(what="evidence beside the record (its digests for good)", kept=evidence, enough=enough),
    )


def when(report: Report) -> str:
    """Say which time a report is about."""
    since = isoformat(report.since) if report.since else "the beginning"
    return f"{counted(report.events, 'event')} from {since} to {isoformat(report.until or report.made_at)}"


def sources(report: Report) -> tuple[tuple[str, tuple[DutyRow, ...]], ...]:
    """Return the rows of each source, in the order of the table."""
    names = dict.fromkeys(row.source for row in report.duties)
    return tuple((name, tuple(row for row in report.duties if row.source == name)) for name in names)


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    lines = [f"# {_TITLE}", "", f"{when(report)}. {_DISCLAIMER}", ""]
    for source, rows in sources(report):
        lines += [f"## {source}", "", "| clause | duty | answer | events | recorded | not recorded |", _rule(6)]
        for row in rows:
            lines.append(
                _line(row.clause, row.duty, row.answer, f"{row.events:,}", "; ".join(row.details), " ".join(row.gaps))
            )
        lines.append("")
    lines += ["## Retention in force (AI Act, 19 and 26(6))", "", "| what | kept | six months |", _rule(3)]
    lines += [_line(row.what, row.kept, "yes" if row.enough else "**no**") for row in report.kept]
    return "\n".join([*lines, ""])


def _rule(columns: int) -> str:
    return f"|{'---|' * columns}"


def _line(*cells: str) -> str:
    texts: Iterable[str] = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(texts)} |"


def html(report: Report) -> bytes:
    """Return the report as one HTML file."""
    view = ReportView(title=_TITLE, report=report, sources=sources(report), when=when(report), note=_DISCLAIMER)
    return document(view, report.made_at)
