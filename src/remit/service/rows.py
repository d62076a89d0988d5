"""A job's history as a list of steps, and what it waits for. Pure."""

from __future__ import annotations

from remit.jobs.state import UNDO_DECISION, CallRecord, History, WaitRecord, doubt_of, is_undo
from remit.service.views import OpenWait, StepRow
from remit.trace.step import call_state, shown


def step_rows(history: History) -> tuple[StepRow, ...]:
    """Every effect in the order it was first recorded."""
    waits: dict[str, list[WaitRecord]] = {}
    for (step, _), record in history.waits.items():
        waits.setdefault(step, []).append(record)
    undoing = [(step, "call") for step in history.calls if is_undo(step)]
    return tuple(_row(history, step, kind, waits.get(step, [])) for step, kind in [*history.places.items(), *undoing])


def open_waits(history: History) -> tuple[OpenWait, ...]:
    """What a job waits for that has not come yet."""
    return tuple(
        OpenWait(
            step=step,
            type=record.waiting.wait_type,
            key=key,
            reason=record.waiting.reason,
            due_at=record.waiting.due_at,
            attempt=_doubted(history, step, key),
        )
        for (step, key), record in history.waits.items()
        if record.completed is None and history.end is None and (key == UNDO_DECISION or not _ended(history, step))
    )


def _ended(history: History, step: str) -> bool:
    """Whether a call that had to wait has come to its end all the same, as its provider could tell."""
    return step in history.calls and history.calls[step].ended


def _doubted(history: History, step: str, key: str) -> int:
    attempt = history.in_doubt(step)
    return attempt if attempt is not None and key == doubt_of(attempt) else 0


def _row(history: History, step: str, kind: str, waits: list[WaitRecord]) -> StepRow:
    waiting = any(record.completed is None for record in waits)
    if kind == "call":
        return _call(history, step, history.calls[step], waiting=waiting)
    if kind in {"time", "random", "uuid"}:
        value = str(history.values[step].value)
        return StepRow(step=step, name=kind, state="ok", result_preview=value)
    if kind == "child":
        child = history.children[step]
        return StepRow(step=step, name=f"recipe.{child.name}", state="ok", args_preview=child.version)
    if kind == "compensation":
        return StepRow(step=step, name="compensate", state="ok" if step in history.compensated else "running")
    key = waits[0].waiting.correlation_key if waits else ""
    return StepRow(
        step=step,
        name=f"wait.{kind}",
        state="waiting" if waiting else "ok",
        args_preview=key if kind != "timer" else "",
        confirmation=key if kind == "human" else "",
        reason=waits[0].waiting.reason if waits else "",
    )


def _call(history: History, step: str, record: CallRecord, *, waiting: bool) -> StepRow:
    refused, started, finished = record.refused, record.started, record.finished
    state = call_state(record, waiting=waiting, ended=history.end is not None)
    if refused is not None:
        return StepRow(
            step=step,
            name=f"tool.{refused.tool_name}",
            state=state,
            code=refused.code,
            reason=refused.reason,
            remedy=refused.remedy,
            confirmation=record.confirmation or "",
        )
    if started is None:
        name = f"tool.{record.wanted}" if record.wanted else "tool"
        return StepRow(step=step, name=name, state=state, confirmation=record.confirmation or "")
    error = finished.error if finished else None
    return StepRow(
        step=step,
        name=f"tool.{started.tool_name}",
        state=state,
        code=error.code if error else "",
        reason=error.message if error else "",
        remedy=error.remedy if error else "",
        duration_us=finished.duration_us if finished else 0,
        attempt=started.attempt,
        args_preview=shown(started.args, started.args_blob),
        result_preview=shown(finished.result, finished.result_blob) if finished else "",
        provider_id=started.provider_id,
        capability_level=f"L{started.capability_level}",
        confirmation=started.confirmation,
        undone=history.undone[step].outcome if step in history.undone else "",
    )
