"""A job's story as a list of steps, and what it waits for. Pure."""

from __future__ import annotations

from collections.abc import Container

from remit.jobs.records import WaitRecord
from remit.jobs.state import UNDO_DECISION, History, doubt_of
from remit.record.step import Preview, StepNarrative, shown
from remit.record.story import Story
from remit.record.views import OpenWait, StepMeta, StepRow


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
    """What a job waits for that has not come yet; `decided`: attempts of steps that people have decided on since."""
    found = (
        _open(history, step, key, record)
        for (step, key), record in history.waits.items()
        if record.completed is None and history.end is None and (key == UNDO_DECISION or not _ended(history, step))
    )
    return tuple(wait for wait in found if not (wait.attempt and (wait.step, wait.attempt) in decided))


def _ended(history: History, step: str) -> bool:
    """Whether a call that had to wait has come to its end all the same, as its provider could tell."""
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
