"""What a run's events say about each step: the fold from a job's stream to step reports. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

import msgspec

from remit.codes import Code
from remit.jobs.state import DOUBT, STUCK, job_of
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.redact import line, preview
from remit.tickets.report import SUMMARY, RunStatus, Span, StepReport
from remit.tickets.steps import ToolStep
from remit.tickets.ticket import moment

_MILLI = 1_000
_REASON = 100
"""Characters of the reason that a job is stuck for, in the summary of a step."""


class StepRecord:
    """What is recorded of one step."""

    def __init__(self) -> None:
        self.began = 0
        self.ended = 0
        self.started: k.ToolInvocationStarted | None = None
        self.finished: k.ToolInvocationFinished | None = None
        self.refused: k.GateRefused | None = None
        self.waits_for: str = ""
        """The confirmation that the step waits for."""
        self.doubted = False
        """A person has to say whether the call took effect."""
        self.evidence: tuple[dict[str, Any], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the step did what was asked."""
        return self.refused is None and self.finished is not None and self.finished.outcome == "success"


def key_of(index: int) -> str:
    """The place of a ticket's step in its run."""
    return f"s{index}"


class RunHistory:
    """Steps of a run by place, folded from the events of its job."""

    def __init__(self, events: Iterable[Event] = (), mode: dict[str, Any] | None = None) -> None:
        """Fold events, in order; `mode` is what the run recorded of the settings it began under."""
        self.mode = mode or {}
        self.steps: dict[str, StepRecord] = {}
        self.job = ""
        self.stuck: k.JobWaiting | None = None
        """Why the installed code could not continue the job, if that was the last thing recorded of it."""
        self.began = self.ended = 0
        self.over = False
        """Whether the job has ended."""
        self.beyond: dict[str, str] = {}
        """Codes of the steps that the ticket's own limits refused, by place."""
        for event in events:
            payload = k.decode(event.kind, event.data)
            self.job = self.job or job_of(event.stream)
            self.stuck = None
            self.began = self.began or event.at
            self.ended = event.at
            fold = self._folds.get(type(payload))
            if fold is not None:
                fold(self, payload, event.at)

    def report(self, index: int, step: ToolStep) -> StepReport:
        """The report of one step; one that has not run yet is blocked."""
        record = self.steps.get(key_of(index)) or StepRecord()
        status, code, summary = self._result(key_of(index), record)
        return StepReport(
            step_index=index,
            tool_name=step.tool_name,
            status=status,
            code=code,
            started_at=moment(record.began or self.began),
            ended_at=moment(record.ended or record.began or self.ended),
            duration_ms=max(0, record.ended - record.began) // _MILLI if record.ended else 0,
            result_summary=summary[:SUMMARY],
            evidence_items=record.evidence,
            side_effect=_side_effect(record),
        )

    @property
    def attempts(self) -> int:
        """The highest number of attempts that a step took."""
        return max((record.started.attempt for record in self.steps.values() if record.started), default=1)

    @property
    def span(self) -> Span:
        """From the first event to the last."""
        duration = (self.ended - self.began) // _MILLI
        return Span(started_at=moment(self.began), ended_at=moment(self.ended), duration_ms=duration)

    def _step(self, step: str, at: int) -> StepRecord:
        record = self.steps.setdefault(step, StepRecord())
        record.began = record.began or at
        return record

    def _result(self, step: str, record: StepRecord) -> tuple[RunStatus, str | None, str]:
        """Status, code and summary of a step."""
        if step in self.beyond:
            return "blocked", self.beyond[step], "the ticket's own limits refuse this step"
        if record.refused is not None:
            return "blocked", record.refused.code, line(record.refused.reason)
        if record.finished is not None:
            return _finished(record.finished)
        return self._open(step, record)

    def _open(self, step: str, record: StepRecord) -> tuple[RunStatus, str | None, str]:
        """Status, code and summary of a step that has not ended."""
        if record.waits_for:
            why = f"waits for an answer: remit confirm {record.waits_for}"
            return "blocked", Code.CONFIRMATION_REQUIRED.name, why
        if record.doubted and not self.over:
            why = f"the call may have taken effect: find out, then remit decide {self.job} {step}"
            return "blocked", Code.OUTCOME_UNKNOWN.name, why
        if record.started is not None:
            return "failed", Code.OUTCOME_UNKNOWN.name, "the call began; nothing says how it ended"
        if self.stuck is not None:
            why = f"{line(self.stuck.reason, _REASON)}; put it right, then retry the ticket"
            return "blocked", self.stuck.correlation_key.removeprefix(STUCK), why
        why = "the run ended before this step" if self.over else "the run has not come to this step"
        return "blocked", Code.RUN_TIMEOUT.name, why

    # --- one method per kind

    def _asked(self, payload: k.ConfirmationRequested, at: int) -> None:
        self._step(payload.step, at).waits_for = payload.confirmation

    def _waiting(self, payload: k.JobWaiting, at: int) -> None:
        if payload.correlation_key.startswith(STUCK):
            self.stuck = payload
        elif payload.correlation_key.startswith(DOUBT):
            self._step(payload.step, at).doubted = True

    def _started(self, payload: k.ToolInvocationStarted, at: int) -> None:
        record = self._step(payload.step, at)
        record.started, record.finished, record.waits_for, record.doubted = payload, None, "", False

    def _finished(self, payload: k.ToolInvocationFinished, at: int) -> None:
        record = self._step(payload.step, at)
        record.finished, record.ended = payload, at

    def _refused(self, payload: k.GateRefused, at: int) -> None:
        record = self._step(payload.step, at)
        record.refused, record.ended, record.waits_for = payload, at, ""

    def _evidence(self, payload: k.EvidenceAttached, at: int) -> None:
        self._step(payload.step, at).evidence = payload.items

    def _completed(self, payload: k.JobCompleted, _at: int) -> None:
        self.over = True
        if isinstance(payload.result, msgspec.Raw):
            self.beyond = msgspec.json.decode(payload.result).get("beyond") or {}

    def _over(self, _payload: k.Payload, _at: int) -> None:
        self.over = True

    _folds: ClassVar[dict[type, Callable[[Any, Any, int], None]]] = {
        k.ConfirmationRequested: _asked,
        k.JobWaiting: _waiting,
        k.ToolInvocationStarted: _started,
        k.ToolInvocationFinished: _finished,
        k.GateRefused: _refused,
        k.EvidenceAttached: _evidence,
        k.JobCompleted: _completed,
        k.JobFailed: _over,
        k.JobCancelled: _over,
    }


def _finished(finished: k.ToolInvocationFinished) -> tuple[RunStatus, str | None, str]:
    error = finished.error
    if error is None:
        return "ok", None, _summary(finished)
    blocked = error.code in Code.__members__ and Code[error.code].status == "blocked"
    return "blocked" if blocked else "failed", error.code, line(error.message)


def _summary(finished: k.ToolInvocationFinished) -> str:
    if isinstance(finished.result, msgspec.Raw):
        return preview(bytes(finished.result))
    return "" if finished.result_blob is msgspec.UNSET else finished.result_blob.preview


def _side_effect(record: StepRecord) -> Literal["read", "write", "unknown"]:
    return record.started.side_effect if record.started is not None else "unknown"
