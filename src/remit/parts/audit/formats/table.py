"""The one table of what each event is in each format. docs/audit.md shows it; a test compares the two.

An event of a kind that has no row is `remit.KIND` among AEL's events, and is left out of the other formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from remit.codes import Code
from remit.journal import kinds as k
from remit.policy.verdict import DENIED

if TYPE_CHECKING:
    from remit.journal.kinds import Payload

Direction = Literal["out", "in", "internal"]
DECISIONS: Final = "decisions"
EVENTS: Final = "events"
REMEMBERED: Final = "remembered:"
_PERSONS: Final = {Code.CONFIRMATION_DENIED.name: "denied", Code.CONFIRMATION_EXPIRED.name: "expired"}
_LIFECYCLE: Final = "protectmcp:lifecycle"


class FormatRow(NamedTuple):
    """The forms of one kind of event, in one case of it; empty: the format has no place for it."""

    kind: str
    case: str
    """The case of the kind, as `case_of` gives it; empty: any."""
    run: str
    """AEL: the run of decisions, or that of events."""
    name: str
    """AEL: the class of the event."""
    direction: Direction
    """AEL: where it goes, seen from the agent."""
    action: str = ""
    """AI Agent Action: the type of the record."""
    receipt: str = ""
    """Receipts: a decision, or the type of a receipt of another kind."""
    ocsf: str = ""
    """OCSF: the operation of an API Activity."""
    span: str = ""
    """OTLP: the operation of a span."""


ROWS: Final = (
    FormatRow("job_created", "", EVENTS, "job.opened", "internal", receipt="session_start", span="invoke_agent"),
    FormatRow("session_opened", "", EVENTS, "session.opened", "internal", receipt="session_start", span="invoke_agent"),
    FormatRow("job_completed", "", EVENTS, "job.ended", "internal", receipt="session_end"),
    FormatRow("job_failed", "", EVENTS, "job.ended", "internal", receipt="session_end"),
    FormatRow("job_cancelled", "", EVENTS, "job.ended", "internal", receipt="session_end"),
    *(
        FormatRow(
            "tool_invocation_started", case, DECISIONS, "tool.call", "out", "tool_call", "allow", "call", "execute_tool"
        )
        for case in ("allowed", "approved", "remembered")
    ),
    FormatRow("tool_invocation_finished", "", EVENTS, "tool.result", "in", receipt="dev.remit:outcome"),
    FormatRow("tool_invocation_finished", "uncertain", EVENTS, "tool.unknown", "in", receipt="dev.remit:outcome"),
    *(
        FormatRow(
            "gate_refused", case, DECISIONS, "tool.refused", "internal", "tool_call", result, "refusal", "execute_tool"
        )
        for case, result in (("policy", "deny"), ("limit", "rate_limit"), ("person", "deny"), ("stage", "deny"))
    ),
    FormatRow(
        "gate_refused", "model", DECISIONS, "model.refused", "internal", "", "dev.remit:model", "refusal", "chat"
    ),
    FormatRow(
        "confirmation_requested",
        "",
        DECISIONS,
        "approval.asked",
        "internal",
        "",
        "require_approval",
        "question",
        "await_approval",
    ),
    FormatRow("confirmation_requested", "wait", EVENTS, "call.waits", "internal"),
    FormatRow("confirmation_decided", "", DECISIONS, "approval.given", "internal", "", "dev.remit:approval", "answer"),
    FormatRow("confirmation_decided", "wait", EVENTS, "call.answered", "internal"),
    FormatRow("confirmation_used", "", EVENTS, "approval.spent", "internal"),
    FormatRow("approval_remembered", "", EVENTS, "grant.made", "internal", receipt="dev.remit:grant", ocsf="grant"),
    FormatRow("approval_revoked", "", EVENTS, "grant.ended", "internal", receipt="dev.remit:grant", ocsf="grant"),
    FormatRow("budget_reached", "", EVENTS, "budget.reached", "internal"),
    FormatRow("limit_returned", "", EVENTS, "limit.returned", "internal"),
    FormatRow("limit_taken", "", EVENTS, "limit.taken", "internal"),
    FormatRow("command_started", "", DECISIONS, "model.call", "out", "", "dev.remit:model", "model", "chat"),
    FormatRow("command_committed", "", EVENTS, "model.answer", "in"),
    FormatRow("evidence_attached", "", EVENTS, "evidence", "internal"),
    FormatRow("bytes_kept", "", EVENTS, "evidence", "internal"),
    FormatRow("call_ungoverned", "", EVENTS, "tool.ungoverned", "internal"),
    FormatRow("recovery_started", "", EVENTS, "recorder.taken_over", "internal", "chain_break"),
    FormatRow("version_mismatch_recorded", "", EVENTS, "drift.version", "internal", receipt="config_change"),
    FormatRow("schema_drift_recorded", "", EVENTS, "drift.schema", "internal", receipt="config_change"),
    FormatRow("model_drift_recorded", "", EVENTS, "drift.model", "internal", receipt="config_change"),
    FormatRow("mcp_tools_pinned", "", EVENTS, "tools.pinned", "internal", receipt="config_change"),
    FormatRow("subject_erased", "", EVENTS, "payload.erased", "internal", receipt="dev.remit:erasure", ocsf="erasure"),
)
LIFECYCLE: Final = frozenset({"session_start", "session_end", "config_change"})
"""Receipts of the type `protectmcp:lifecycle`."""
DECISION: Final = frozenset({"allow", "deny", "rate_limit", "require_approval"})
"""Receipts of the type `protectmcp:decision`."""
_BY_CASE: Final = {(row.kind, row.case): row for row in ROWS}


def row_of(kind: str, stream: str, payload: Payload | None) -> FormatRow:
    """Return the row of an event."""
    case = case_of(stream, payload)
    row = _BY_CASE.get((kind, case)) or _BY_CASE.get((kind, ""))
    return row or FormatRow(kind, "", EVENTS, f"remit.{kind}", "internal")


def case_of(stream: str, payload: Payload | None) -> str:
    """Return the case of an event; empty: its kind has one only."""
    match payload:
        case k.ToolInvocationStarted():
            return (
                "remembered"
                if payload.rule_id.startswith(REMEMBERED)
                else "approved"
                if payload.confirmation
                else "allowed"
            )
        case k.ToolInvocationFinished():
            return "uncertain" if payload.step_outcome == "uncertain" else ""
        case k.GateRefused():
            return _refusal(payload)
        case k.ConfirmationRequested() | k.ConfirmationDecided():
            return "" if stream.endswith(f"/{payload.confirmation}") else "wait"
        case _:
            return ""


def person_of(refused: k.GateRefused) -> str:
    """Return how the question that a refusal rests on ended: `denied` or `expired`; empty: no one was asked."""
    return _PERSONS.get(refused.code, "")


def _refusal(refused: k.GateRefused) -> str:
    if refused.model_call:
        return "model"
    if person_of(refused):
        return "person"
    if refused.facts and refused.rule_id in refused.facts.taken:
        return "limit"
    return "policy" if refused.code in DENIED else "stage"
