"""A job's history as a list of steps, and what it waits for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import msgspec

from remit.jobs.records import CallRecord, ModelRecord, WaitRecord
from remit.jobs.state import UNDO_DECISION, History, doubt_of, is_undo
from remit.journal.kinds import OptionalRaw, OptionalRef
from remit.service.views import OpenWait, StepMeta, StepRow
from remit.trace.children import child_states
from remit.trace.step import call_state, said, shown

Preview = Callable[[OptionalRaw, OptionalRef], str]
"""Shows a recorded value on one line."""


def step_rows(history: History, preview: Preview = shown) -> tuple[StepRow, ...]:
    """Every effect in the order it was first recorded; most of the time goes into previews."""
    waits: dict[str, list[WaitRecord]] = {}
    for (step, _), record in history.waits.items():
        waits.setdefault(step, []).append(record)
    undoing = [(step, "call") for step in history.calls if is_undo(step)]
    places = [*history.places.items(), *undoing]
    rows = [_row(history, step, kind, waits.get(step, []), preview) for step, kind in places]
    return tuple(_with_children(history, rows) if history.children else rows)


def step_row(history: History, step: str) -> StepRow | None:
    """One of them; None if there is no such step."""
    if step in history.children:  # it stands where its steps stand
        return next((row for row in step_rows(history) if row.step == step), None)
    kind = "call" if is_undo(step) and step in history.calls else history.places.get(step)
    waits = [record for (place, _), record in history.waits.items() if place == step]
    return None if kind is None else _row(history, step, kind, waits, shown)


def _with_children(history: History, rows: list[StepRow]) -> list[StepRow]:
    found = child_states(history, ((row.step, row.state) for row in rows))
    return [
        msgspec.structs.replace(row, state=found[row.step], ok=found[row.step] == "ok") if row.step in found else row
        for row in rows
    ]


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


def _row(history: History, step: str, kind: str, waits: list[WaitRecord], preview: Preview) -> StepRow:
    waiting = any(record.completed is None for record in waits)
    if kind == "call":
        return _call(history, step, history.calls[step], preview, waiting=waiting)
    if kind == "model":
        return _model(step, history.models[step], preview, waiting=waiting, over=history.end is not None)
    if kind in {"time", "random", "uuid"}:
        return _step(step, kind, "ok", meta=StepMeta(result_preview=str(history.values[step].value)))
    if kind == "child":
        child = history.children[step]
        return _step(step, f"recipe.{child.name}", "ok", meta=StepMeta(args_preview=child.version))
    if kind == "compensation":
        return _step(step, "compensate", "ok" if step in history.compensated else "running")
    key = waits[0].waiting.correlation_key if waits else ""
    return _step(
        step,
        f"wait.{kind}",
        "waiting" if waiting else "ok",
        meta=StepMeta(args_preview=key if kind != "timer" else ""),
        confirmation=key if kind == "human" else "",
        reason=waits[0].waiting.reason if waits else "",
    )


def _call(history: History, step: str, record: CallRecord, preview: Preview, *, waiting: bool) -> StepRow:
    refused, started, finished = record.refused, record.started, record.finished
    state = call_state(record, waiting=waiting, ended=history.end is not None)
    if refused is not None:
        return _step(
            step,
            f"tool.{refused.tool_name}",
            state,
            error_code=refused.code,
            meta=StepMeta(tool_name=refused.tool_name),
            reason=refused.reason,
            remedy=refused.remedy,
            confirmation=record.confirmation or "",
        )
    if started is None:
        name = f"tool.{record.wanted}" if record.wanted else "tool"
        meta = StepMeta(tool_name=record.wanted)
        return _step(step, name, state, meta=meta, confirmation=record.confirmation or "")
    error = finished.error if finished else None
    return _step(
        step,
        f"tool.{started.tool_name}",
        state,
        duration_ms=finished.duration_us / 1_000 if finished else 0.0,
        error_code=error.code if error else "",
        meta=StepMeta(
            args_preview=preview(started.args, started.args_blob),
            result_preview=preview(finished.result, finished.result_blob) if finished else "",
            provider_id=started.provider_id,
            risk_level=started.risk_level,
            capability_level=f"L{started.capability_level}",
            tool_name=started.tool_name,
        ),
        reason=error.message if error else "",
        remedy=error.remedy if error else "",
        attempt=started.attempt,
        confirmation=started.confirmation,
        undone=history.undone[step].outcome if step in history.undone else "",
    )


def _model(step: str, record: ModelRecord, preview: Preview, *, waiting: bool, over: bool) -> StepRow:
    refused, started, committed = record.refused, record.started, record.committed
    confirmation = record.confirmation or ""
    if refused is not None:
        name = f"model.{refused.tool_name}"
        more = {"error_code": refused.code, "reason": refused.reason, "remedy": refused.remedy}
        return _step(step, name, "blocked", confirmation=confirmation, **more)
    if started is None:
        return _step(step, "model", "waiting" if waiting else "running", confirmation=confirmation)
    name = f"model.{started.llm_provider}:{started.llm_model}"
    if committed is None or not record.ended:
        state = "unknown" if over else "waiting" if waiting else "running"
        return _step(step, name, state, attempt=started.attempt, confirmation=confirmation)
    error = committed.error
    return _step(
        step,
        name,
        "failed" if error else "ok",
        duration_ms=committed.duration_ms,
        error_code=error.code if error else "",
        meta=StepMeta(
            args_preview=f"{len(started.added)} new message{'' if len(started.added) == 1 else 's'}",
            result_preview=(said if preview is shown else preview)(committed.result, committed.result_blob),
            provider_id=started.llm_provider,
        ),
        reason=error.message if error else "",
        remedy=error.remedy if error else "",
        attempt=started.attempt,
        confirmation=confirmation,
    )


def _step(step: str, name: str, state: str, **given: Any) -> StepRow:
    return StepRow(step=step, name=name, state=state, ok=state == "ok", **given)
