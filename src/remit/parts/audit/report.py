"""The report about a record: each duty, the events that answer it, what is not recorded, and how long it is kept.

The fourteen fields are those that auditors ask for of each action of an agent. Of the AI Act (Regulation (EU)
2024/1689) and of ISO/IEC 42001 here stand the clauses that a record can answer; whether a system falls under them is
not for a record to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple

import msgspec

from remit.clock import isoformat
from remit.evidence.verify import counted
from remit.pages.page import PageView
from remit.parts.audit.trace import document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from remit.parts.audit.facts import Counts

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


FOURTEEN: Final = "Fourteen fields"
AI_ACT: Final = "AI Act"
ISO: Final = "ISO/IEC 42001"


class Duty(NamedTuple):
    """One duty, or one field."""

    source: str
    clause: str
    duty: str
    kinds: tuple[str, ...]
    """The kinds of events that answer it; empty: every kind does."""
    every: tuple[str, ...] = ()
    """Fields, as `kind.field`, that each event of the kind should have."""
    some: tuple[str, ...] = ()
    """Fields that only some events have, which are counted."""
    gap: str = ""
    """The part that is not recorded, or only partly, whatever the journal holds."""
    is_override: bool = False
    """True if approvals do not count among the answers."""


_CALL: Final = "tool_invocation_started"
_END: Final = "tool_invocation_finished"
_ANSWER: Final = "confirmation_decided"
_DRIFTS: Final = ("version_mismatch_recorded", "schema_drift_recorded", "model_drift_recorded")

DUTIES: Final = (
    Duty(
        FOURTEEN, "1", "Deployment", ("recorder_opened",),
        gap="Only a recorder names the deployment, the release and the settings.",
    ),
    Duty(
        FOURTEEN, "2", "Identity of the agent", ("job_created", "session_opened"),
        ("job_created.principal", "job_created.execution_version"), ("session_opened.client",),
        gap="The name of a client is its own word; an agent has no identifier that outlives its jobs.",
    ),
    Duty(FOURTEEN, "3", "Session", ("session_opened", "call_opened", "job_created")),
    Duty(
        FOURTEEN, "4", "Time", (),
        gap="Times are of the clock of the machine that recorded them.",
    ),
    Duty(
        FOURTEEN, "5", "Prompt", ("command_started",), ("command_started.prompt_hash",),
        gap="The bytes that were sent are recorded by digest alone.",
    ),
    Duty(
        FOURTEEN, "6", "Retrieved context and its origin", ("evidence_attached", _END), (),
        (f"{_CALL}.output_trusted", f"{_CALL}.untrusted_input"),
    ),
    Duty(FOURTEEN, "7", "Output of the model", ("command_committed",), (), ("command_committed.response_id",)),
    Duty(FOURTEEN, "8", "Planned action", ("plan_generated", "command_committed"), (), (f"{_CALL}.call_id",)),
    Duty(
        FOURTEEN, "9", "Class of the action", (_CALL, "gate_refused"), (f"{_CALL}.risk_level",),
        ("gate_refused.risk_level",), gap="A refused call of a tool that does not exist has no class.",
    ),
    Duty(
        FOURTEEN, "10", "Reference of the approval", (_ANSWER,), (f"{_ANSWER}.digest",),
        (f"{_ANSWER}.proof", f"{_ANSWER}.signature", f"{_CALL}.confirmation"),
        gap="Without proof the name of the person is a claim.",
    ),
    Duty(
        FOURTEEN, "11", "Executed action", (_END,), (f"{_CALL}.request_schema_hash",),
        gap="A value is recorded as it was understood, not as the bytes that went over the wire.",
    ),
    Duty(
        FOURTEEN, "12", "Chain of the calls", (_CALL,), (f"{_CALL}.span_id",),
        gap="Between streams only the position in the journal says what came first.",
    ),
    Duty(FOURTEEN, "13", "Where the output went", ("session_opened", "output_read"), (), ("session_opened.client",)),
    Duty(FOURTEEN, "14", "Version of the policy", (_CALL,), (f"{_CALL}.policy_hash", f"{_CALL}.policy_kept")),
    Duty(
        AI_ACT, "12(1)", "Events are recorded automatically over the lifetime", (),
        gap="A change of settings, local tools or prices is recorded when a worker or a recorder starts, not before.",
    ),
    Duty(AI_ACT, "12(2)(a)", "Situations of risk, and modifications", ("gate_refused", "job_failed", *_DRIFTS)),
    Duty(AI_ACT, "12(2)(b)", "Post-market monitoring", (_END, "command_committed")),
    Duty(AI_ACT, "12(2)(c)", "Monitoring of the operation", ("worker_started", "recovery_started", "output_read")),
    Duty(AI_ACT, "14(1)", "People oversee the system", ("confirmation_requested", _ANSWER), (f"{_ANSWER}.digest",)),
    Duty(
        AI_ACT, "14(4)(d)", "People override or reverse",
        (_ANSWER, "approval_revoked", "step_decided", "step_compensated"), is_override=True,
    ),
    Duty(AI_ACT, "14(4)(e)", "People stop the system", ("cancel_requested", "job_cancelled")),
    Duty(
        AI_ACT, "26(2)", "The people have competence and authority", (_ANSWER,), (f"{_ANSWER}.proof",),
        (f"{_ANSWER}.signature",), gap="Who may approve stands in the policy; whether they are competent, nowhere.",
    ),
    Duty(AI_ACT, "26(5)", "The deployer monitors, and informs", ("notification_sent", "output_read")),
    Duty(ISO, "A.6.2.6", "Operation and monitoring", (_END, "job_failed", "recovery_started", *_DRIFTS)),
    Duty(ISO, "A.6.2.8", "Event logs", ()),
)  # fmt: skip
"""Every duty, by source. Articles 19 and 26(6), how long logs are kept, are answered by the retention in force."""


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


class ReportView(PageView, frozen=True, kw_only=True):
    """The report as a file."""

    template: ClassVar[str] = "report.html"
    report: Report
    sources: tuple[tuple[str, tuple[DutyRow, ...]], ...]
    when: str
    note: str


def duty_rows(counts: Counts, *, reads: bool) -> tuple[DutyRow, ...]:
    """Answer every duty from what was counted; `reads`: whether reads are recorded."""
    others = sum(act.what == "answered" and act.note != "approve" for act in counts.acts)
    acts = counts.acts_of
    kinds = {True: {**acts, _ANSWER: others}, False: acts}
    return tuple(
        _row(duty, kinds[duty.is_override] if duty.kinds else counts.kinds, counts.fields, reads=reads)
        for duty in DUTIES
    )


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
