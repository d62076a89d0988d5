"""The steps of a job as rows: where each stands, and a bar of what it did when."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal

import msgspec

from remit.pages.scale import Scale, Span
from remit.service.views import StepRow
from remit.trace.narrative import Narrative
from remit.trace.step import StepNarrative

SegmentKind = Literal["work", "failed", "wait", "backoff", "doubt"]
ALIKE: Final = 5
"""So many successes in a row that differ in nothing are shown as one row."""
_THIN: Final = 8.0
"""Units that a bar takes at least, so that it can be seen."""
_MARKS: Final = {
    "ok": ("✓", "quiet"),
    "failed": ("✗", "bad"),
    "blocked": ("⊘", "bad"),
    "running": ("▸", "busy"),
    "unknown": ("?", "asks"),
    "waiting": ("◷", "asks"),
}


class Segment(msgspec.Struct, frozen=True):
    """A piece of a bar, on the scale of the page."""

    kind: SegmentKind
    x: float
    width: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A step, or several alike."""

    step: str
    """The step's place; the first one's, for several."""
    number: int = 1
    """How many steps it stands for."""
    name: str
    state: str
    mark: str
    tone: str
    depth: int
    """How many branches it is inside."""
    note: str
    """Why it is as it is, or what it was given."""
    rule: str
    version: str
    drift: bool
    """Whether its tool or model is another one today."""
    attempts: int
    took: int
    """Microseconds; 0: no time is recorded."""
    segments: tuple[Segment, ...]
    spoken: str
    """The bar in words."""


Only = Literal["", "failed", "waiting", "writes", "drift"]


def chosen(rows: Iterable[StepRow], told: Mapping[str, StepNarrative], only: Only, find: str) -> list[StepRow]:
    """The steps that are asked for: of one sort, or with a text in place, name, arguments, result or reason."""
    wanted = find.casefold()
    return [row for row in rows if _is(row, told.get(row.step), only) and (not wanted or wanted in _text(row))]


def scale_of(told: Narrative, now: int, *, fold: bool) -> Scale:
    """The scale of a job's whole time: it ends with the job, or now."""
    until = told.ended_at if told.ended_at is not None else now
    busy = [
        Span(attempt.started_at, attempt.ended_at or attempt.started_at)
        for step in told.steps
        for attempt in step.attempts
    ]
    instants = [Span(step.started_at, step.started_at) for step in told.steps]
    models = [Span(step.started_at, step.ended_at or until) for step in told.steps if step.llm_invocation]
    return Scale([*busy, *instants, *models], told.created_at, until, fold=fold)


def lines(
    rows: Sequence[StepRow], told: Mapping[str, StepNarrative], scale: Scale, until: int, opened: Container[str]
) -> list[Row]:
    """The rows; runs of alike successes as one, unless their first step is `opened`. Failures are never folded."""
    made = [_row(row, told.get(row.step), scale, until) for row in rows]
    found: list[Row] = []
    for alike, group in groupby(made, key=_alike):
        run = list(group)
        if alike and len(run) >= ALIKE and run[0].step not in opened:
            found.append(_folded(run))
        else:
            found += run
    return found


def _alike(row: Row) -> tuple[str, int] | None:
    plain = row.state == "ok" and row.attempts <= 1 and not row.drift
    return (row.name, row.depth) if plain else None


def _folded(run: list[Row]) -> Row:
    bars = [segment for row in run for segment in row.segments]
    joined: tuple[Segment, ...] = ()
    if bars:
        x = min(bar.x for bar in bars)
        joined = (Segment("work", x, max(bar.x + bar.width for bar in bars) - x),)
    spoken = f"{len(run)} steps {run[0].name}: all {run[0].state}"
    took = sum(row.took for row in run)
    return msgspec.structs.replace(run[0], number=len(run), note="", segments=joined, took=took, spoken=spoken)


def _row(row: StepRow, told: StepNarrative | None, scale: Scale, until: int) -> Row:
    mark, tone = _MARKS[row.state]
    attempts = len(told.attempts) if told and told.attempts else row.attempt
    name = row.name.removeprefix("tool.")
    tries = f", {attempts} attempts" if attempts > 1 else ""
    return Row(
        step=row.step,
        name=name,
        spoken=f"step {row.step} {name}: {row.state}{tries}",
        state=row.state,
        mark=mark,
        tone=tone,
        depth=min(4, row.step.count(".") // 2),
        note=_note(row),
        rule=told.rule_id if told else "",
        version=told.tool_invocation.version if told and told.tool_invocation else "",
        drift=bool(told and told.drifts),
        attempts=attempts,
        took=row.duration_us or (_took(told) if told else 0),
        segments=_segments(row, told, scale, until) if told else (),
    )


def _note(row: StepRow) -> str:
    if row.error_code:
        return f"{row.error_code}: {row.reason}"
    if row.state == "waiting" and row.reason and row.reason != "approval":
        return row.reason
    return row.meta.args_preview or row.meta.result_preview


def _took(told: StepNarrative) -> int:
    return told.ended_at - told.started_at if told.ended_at is not None else 0


def _segments(row: StepRow, told: StepNarrative, scale: Scale, until: int) -> tuple[Segment, ...]:
    found = []
    for wait in told.waits:
        kind: SegmentKind = "backoff" if wait.key.startswith("retry:") else "wait"
        found.append(_segment(kind, wait.since, wait.until or until, scale))
    for attempt in told.attempts:
        unseen = attempt.ended_at is None
        end = attempt.ended_at or (until if row.state == "running" else attempt.started_at)
        kind = "doubt" if unseen and row.state == "unknown" else "failed" if attempt.code else "work"
        found.append(_segment(kind, attempt.started_at, end, scale))
    if not found:
        found.append(_segment("failed" if row.state == "blocked" else "work", told.started_at, _end(told), scale))
    return tuple(found)


def _end(told: StepNarrative) -> int:
    return told.ended_at if told.ended_at is not None else told.started_at


def _segment(kind: SegmentKind, since: int, until: int, scale: Scale) -> Segment:
    x, end = scale.at(since), scale.at(max(since, until))
    width = max(_THIN, end - x)
    return Segment(kind, round(min(x, 1_000 - width), 1), round(width, 1))


def _is(row: StepRow, told: StepNarrative | None, only: Only) -> bool:
    match only:
        case "failed":
            return row.state in {"failed", "blocked"}
        case "waiting":
            return row.state in {"waiting", "unknown"}
        case "writes":
            return row.meta.risk_level not in {"", "read_only"}
        case "drift":
            return bool(told and told.drifts)
        case _:
            return True


def _text(row: StepRow) -> str:
    parts = (row.step, row.name, row.error_code, row.reason, row.meta.args_preview, row.meta.result_preview)
    return " ".join(parts).casefold()
