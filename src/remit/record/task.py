"""A job as a task result: its error, what it left behind, and its trace in lines. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.jobs.records import WaitRecord
from remit.jobs.state import UNDO_DECISION, History, doubt_of, stuck_by
from remit.journal.kinds import ErrorInfo, JobCancelled, JobFailed
from remit.record.step import Preview, StepNarrative, shown
from remit.record.story import Story
from remit.record.views import Artifact, JobRow, OpenWait, StepMeta, StepRow, TaskError
from remit.record.words import words

if TYPE_CHECKING:
    from remit.jobs.state import History
    from remit.journal.event import Event

_LINES: Final = 1_000


def task_error(history: History, row: JobRow) -> TaskError | None:
    """Return why a job failed, was cancelled, or cannot continue the code at hand; None if it did not."""
    end, stuck = history.end, history.stuck
    if isinstance(end, JobFailed):
        return error_view(end.error)
    if isinstance(end, JobCancelled):
        why = f": {end.reason}" if end.reason else ""
        by = f" by {end.by}" if end.by else ""
        return TaskError(code=Code.JOB_CANCELLED.name, message=f"cancelled{by}{why}")
    if row.stuck and stuck is not None and stuck.correlation_key == stuck_by(row.code):
        return error_view(ErrorInfo(code=row.code, message=stuck.reason, step=stuck.step))
    return None


def error_view(error: ErrorInfo) -> TaskError:
    """A recorded error as faces show it."""
    code = Code.__members__.get(error.code)
    return TaskError(
        code=error.code,
        message=error.message,
        retryable=error.retryable or (code is not None and code.retryable),
        step=error.step,
        remedy=error.remedy,
        cause=error.cause,
        frames=error.frames,
    )


def artifacts(history: History) -> tuple[Artifact, ...]:
    """The evidence of every call, in order."""
    return tuple(
        Artifact(
            step=step,
            kind=item.get("kind", ""),
            source=item.get("source", ""),
            hash=item.get("hash", ""),
            bytes=item.get("bytes", 0),
            storage=item.get("storage", "omitted"),
        )
        for step, record in history.calls.items()
        for item in record.evidence
    )


def trace_lines(events: Sequence[Event]) -> tuple[str, ...]:
    """An event a line, with the time left out; a last line says how many more there are."""
    lines = [f"{event.kind} {words(event)}".rstrip() for event in events[:_LINES]]
    more = len(events) - len(lines)
    return (*lines, f"… and {more} more") if more else tuple(lines)


def step_rows(story: Story, preview: Preview = shown) -> tuple[StepRow, ...]:
    """Every effect in the order in which it began; most of the time goes into previews."""
    return tuple(step_row(told) for told in story.tell(preview))


def step_row(told: StepNarrative) -> StepRow:
    """A step of the story as a row."""
    tool, model = told.tool_invocation, told.llm_invocation
    kind, _, name = told.name.partition(".")
    return StepRow(
        step=told.step,
        name=told.name,
        ok=told.state == "ok",
        duration_ms=told.duration_us / 1_000,
        error_code=told.code,
        meta=StepMeta(
            args_preview=told.args_preview,
            result_preview=told.result_preview,
            provider_id=tool.provider if tool else model.provider if model else "",
            risk_level=told.risk_level,
            capability_level=told.capability_level,
            tool_name=name if kind == "tool" else "",
        ),
        state=told.state,
        reason=told.reason,
        remedy=told.remedy,
        attempt=told.attempt,
        confirmation=told.confirmation,
        undone=told.undone,
        started_at=told.started_at,
        taken_from=told.taken_from,
    )


def open_waits(history: History, decided: Container[tuple[str, int]] = ()) -> tuple[OpenWait, ...]:
    """Return the waits of a job that go on; `decided`: attempts of steps that people have decided on since."""
    found = (
        _open(history, step, key, record)
        for (step, key), record in history.waits.items()
        if record.completed is None and history.end is None and (key == UNDO_DECISION or not _ended(history, step))
    )
    return tuple(wait for wait in found if not (wait.attempt and (wait.step, wait.attempt) in decided))


def _ended(history: History, step: str) -> bool:
    """Return whether a call that had to wait has come to its end all the same, as its provider could tell."""
    if step in history.models:
        return history.models[step].ended
    return step in history.calls and history.calls[step].ended


def _doubted(history: History, step: str, key: str) -> int:
    attempt = history.in_doubt(step)
    return attempt if attempt is not None and key == doubt_of(attempt) else 0


def _open(history: History, step: str, key: str, record: WaitRecord) -> OpenWait:
    attempt = _doubted(history, step, key)
    call = history.calls.get(step)
    sent = call.started if attempt and call is not None else None
    return OpenWait(
        step=step,
        type=record.waiting.wait_type,
        key=key,
        reason=record.waiting.reason,
        due_at=record.waiting.due_at,
        attempt=attempt,
        idempotency_key=sent.idempotency_key if sent is not None else "",
    )
