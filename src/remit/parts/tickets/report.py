"""The report on a run of steps: RunReport 1.0.0 and its parts (contract: tickets, "Reports"). Pure.

Status of a run: its worst step, blocked before failed before ok. Code of a run: that of the first step with this
status. A run without steps is blocked with INVALID_TOOL_STEP. No bytes are in a report: evidence is named by digest.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Self, get_args

import msgspec

from remit.codes import Code

Status = Literal["PROCEED", "DEFER", "BLOCK"]
STATUSES: Final[tuple[str, ...]] = get_args(Status)
MAX_REASON: Final = 512
"""Characters of a reason."""


class ToolVerdict(msgspec.Struct, frozen=True):
    """A status and, if it needs one, a reason of at most 512 characters."""

    status: Status
    reason: str = ""

    @classmethod
    def read(cls, value: Any) -> Self | None:
        """The verdict a value holds: an object, or the bare status. Return None for anything else."""
        if isinstance(value, str):
            value = {"status": value}
        try:
            verdict = msgspec.convert(value, cls)
        except msgspec.ValidationError:
            return None
        return verdict if len(verdict.reason) <= MAX_REASON else None

    @classmethod
    def of_run(cls, status: str, reason: str = "") -> Self:
        """The verdict of a run: ok proceeds, everything else is deferred."""
        return cls("PROCEED" if status == "ok" else "DEFER", reason[:MAX_REASON])


VERSION: Final = "1.0.0"
SUMMARY: Final = 200
"""Characters of a result's summary."""

RunStatus = Literal["ok", "failed", "blocked"]
_WORST: Final = {"blocked": 2, "failed": 1, "ok": 0}


class StepReport(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a run."""

    step_index: int
    tool_name: str
    status: RunStatus
    code: str | None
    started_at: str
    ended_at: str
    duration_ms: int
    result_summary: str
    evidence_items: tuple[dict[str, Any], ...]
    side_effect: Literal["read", "write", "unknown"]


class AttemptEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of a run."""

    at: str
    type: Literal["RUN_START", "RUN_END", "STEP_START", "STEP_END"]
    step_index: int | None = None
    tool_name: str | None = None
    status: str | None = None
    code: str | None = None
    message: str = ""


class EvidenceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Every piece of evidence of a run."""

    items: tuple[dict[str, Any], ...]


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a ticket's steps."""

    version: str = VERSION
    run_id: str
    ticket_id: str
    status: RunStatus
    code: str | None
    started_at: str
    ended_at: str
    duration_ms: int
    step_reports: tuple[StepReport, ...]
    evidence_summary: EvidenceSummary
    tool_verdict: ToolVerdict
    terminal_status: RunStatus
    primary_failure_code: str | None
    max_attempts: int
    retry_policy_id: str
    mode_snapshot: dict[str, Any]
    attempt_events: tuple[AttemptEvent, ...]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """When something began and ended."""

    started_at: str
    ended_at: str
    duration_ms: int


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says about a run beside its steps."""

    run_id: str
    ticket_id: str
    span: Span
    max_attempts: int = 1
    retry_policy_id: str = "none"
    mode_snapshot: dict[str, Any] = msgspec.field(default_factory=dict)


def _first(items: tuple[dict[str, Any], ...], most: int) -> tuple[dict[str, Any], ...]:
    """Return the first items; the last one has the number of those that were dropped, as in the evidence of a call."""
    items_kept, dropped = items[:most], len(items) - most
    if dropped <= 0 or not items_kept:
        return items_kept
    metadata = items_kept[-1].get("metadata", {})
    counted = {**metadata, "dropped_items": metadata.get("dropped_items", 0) + dropped}
    return (*items_kept[:-1], {**items_kept[-1], "metadata": counted})


def run_report(facts: RunFacts, steps: tuple[StepReport, ...], max_items: int) -> RunReport:
    """The report of a run, with at most `max_items` pieces of evidence in its summary."""
    status, code = _worst(steps)
    items = tuple(item for step in steps for item in step.evidence_items)
    return RunReport(
        run_id=facts.run_id,
        ticket_id=facts.ticket_id,
        status=status,
        code=code,
        started_at=facts.span.started_at,
        ended_at=facts.span.ended_at,
        duration_ms=facts.span.duration_ms,
        step_reports=steps,
        evidence_summary=EvidenceSummary(items=_first(items, max_items)),
        tool_verdict=ToolVerdict.of_run(status, _reason(steps, status, code)),
        terminal_status=status,
        primary_failure_code=code,
        max_attempts=facts.max_attempts,
        retry_policy_id=facts.retry_policy_id,
        mode_snapshot=facts.mode_snapshot,
        attempt_events=_moments(facts, steps, status, code),
    )


def without_moments(report: RunReport) -> dict[str, Any]:
    """A report as JSON without times and identifiers: the same ticket gives the same under the stub gateway."""
    stripped: dict[str, Any] = _stripped(msgspec.to_builtins(report))
    return stripped


_MOMENTS: Final = frozenset({"run_id", "started_at", "ended_at", "duration_ms", "at", "retrieved_at", "ticket_id"})


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(inner) for key, inner in value.items() if key not in _MOMENTS}
    return [_stripped(inner) for inner in value] if isinstance(value, list | tuple) else value


def _worst(steps: tuple[StepReport, ...]) -> tuple[RunStatus, str | None]:
    if not steps:
        return "blocked", Code.INVALID_TOOL_STEP.name
    worst = max(steps, key=lambda step: _WORST[step.status])  # the first of those that are equally bad
    return worst.status, worst.code


def _reason(steps: tuple[StepReport, ...], status: RunStatus, code: str | None) -> str:
    if status == "ok":
        return ""
    if not steps:
        return "the ticket has no steps"
    first = next(step for step in steps if step.status == status)
    return f"step {first.step_index} ({first.tool_name}): {code}" + (
        f": {first.result_summary}" * bool(first.result_summary)
    )


def _moments(
    facts: RunFacts, steps: tuple[StepReport, ...], status: RunStatus, code: str | None
) -> tuple[AttemptEvent, ...]:
    inner: list[AttemptEvent] = []
    for step in steps:
        inner += (
            AttemptEvent(at=step.started_at, type="STEP_START", step_index=step.step_index, tool_name=step.tool_name),
            AttemptEvent(
                at=step.ended_at,
                type="STEP_END",
                step_index=step.step_index,
                tool_name=step.tool_name,
                status=step.status,
                code=step.code,
                message=step.result_summary,
            ),
        )
    return (
        AttemptEvent(at=facts.span.started_at, type="RUN_START"),
        *inner,
        AttemptEvent(at=facts.span.ended_at, type="RUN_END", status=status, code=code),
    )
