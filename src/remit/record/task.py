"""A job as a task result: its error, what it left behind, and its trace in lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.jobs.state import stuck_by
from remit.journal.kinds import ErrorInfo, JobCancelled, JobFailed
from remit.record.views import Artifact, JobRow, TaskError
from remit.record.words import words

if TYPE_CHECKING:
    from remit.jobs.state import History
    from remit.journal.event import Event

_LINES: Final = 1_000


def task_error(history: History, row: JobRow) -> TaskError | None:
    """Why a job failed, was cancelled, or cannot continue the code at hand; None if it did not."""
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
