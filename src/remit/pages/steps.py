"""The steps of a job as rows: where each stands, and a bar of what it did when."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby
from typing import Final, Literal

import msgspec

from remit.pages.scale import Scale, Span
from remit.record.step import StepNarrative, Waited
from remit.record.story import Story
from remit.record.views import StepRow

SegmentKind = Literal["queue", "work", "failed", "wait", "backoff", "doubt"]
"""`queue`: what it waited for had come, and no worker had taken the job yet."""
ALIKE: Final = 5
"""So many successes in a row that differ in nothing are shown as one row."""
_THIN: Final = 8.0
"""Units that a bar takes at least, so that it can be seen."""
_QUEUE_US: Final = 1_000
"""Microseconds up to which a worker took it at once."""
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
    taken_from: str
    """The job that recorded it, where a retry took it over; such a step has no bar."""


Only = Literal["", "failed", "waiting", "writes", "drift"]


Group = list[StepRow]
"""Steps that one row stands for."""
Told = Callable[[str], StepNarrative | None]
"""Tells of a step."""


def chosen(rows: Iterable[StepRow], drifted: Container[str], only: Only, find: str) -> list[StepRow]:
    """The steps that are asked for: of one sort, or with a text in place, name, arguments, result or reason."""
    wanted = find.casefold()
    return [row for row in rows if _is(row, drifted, only) and (not wanted or wanted in _text(row))]


def drifted_in(story: Story) -> frozenset[str]:
    """The names of tools, and the places of questions to models, that are others today."""
    return frozenset(drift.step or drift.subject for drift in story.drifts)


def _is_drifted(row: StepRow, drifted: Container[str]) -> bool:
    return row.step in drifted or row.meta.tool_name in drifted


def scale_of(story: Story, until: int, *, fold: bool) -> Scale:
    """The scale of a whole time, which ends `until` then."""
    return Scale((Span(*span) for span in story.busy(until)), story.created_at, until, fold=fold)


def groups(rows: Sequence[StepRow], drifted: Container[str], opened: Container[str]) -> list[Group]:
    """Runs of alike successes together, unless their first step is `opened`; every other step, and each failure, alone.

    `drifted` holds what is another one today (`drifted_in`).
    """
    found: list[Group] = []
    for alike, group in groupby(rows, key=lambda row: _alike(row, drifted)):
        run = list(group)
        if alike and len(run) >= ALIKE and run[0].step not in opened:
            found.append(run)
        else:
            found += [[row] for row in run]
    return found


def lines(
    shown: Iterable[Group], told: Told, scale: Scale, until: int, queued: tuple[str, int, int] | None = None
) -> list[Row]:
    """A row for each group; `queued` says before which step, and from when to when, the job waited for a worker."""
    found = [
        _row(group[0], told(group[0].step), scale, until) if len(group) == 1 else _folded(group, told, scale, until)
        for group in shown
    ]
    if queued is None:
        return found
    first, since, end = queued
    queue = _segment("queue", since, end, scale)
    return [
        msgspec.structs.replace(row, segments=(queue, *row.segments)) if row.step == first else row for row in found
    ]


def _alike(row: StepRow, drifted: Container[str]) -> tuple[str, int] | None:
    plain = row.state == "ok" and row.attempt <= 1 and not _is_drifted(row, drifted)
    return (row.name + row.taken_from, _depth(row)) if plain else None


def _depth(row: StepRow) -> int:
    return min(4, row.step.count(".") // 2)


def _folded(group: Group, told: Told, scale: Scale, until: int) -> Row:
    made = _row(group[0], told(group[0].step), scale, until)
    stories = [story for row in group if (story := told(row.step)) is not None]
    joined: tuple[Segment, ...] = ()
    if stories and not group[0].taken_from:
        since, end = min(one.started_at for one in stories), max(_end(one) for one in stories)
        joined = (_segment("work", since, end, scale),)
    spoken = f"{len(group)} steps {made.name}: all {made.state}"
    took = sum(row.duration_us or (_took(one) if (one := told(row.step)) else 0) for row in group)
    return msgspec.structs.replace(made, number=len(group), note="", segments=joined, took=took, spoken=spoken)


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
        depth=_depth(row),
        note=_note(row, told),
        rule=told.rule_id if told else "",
        version=told.tool_invocation.version if told and told.tool_invocation else "",
        drift=bool(told and told.drifts),
        attempts=attempts,
        took=row.duration_us or (_took(told) if told else 0),
        segments=_segments(row, told, scale, until) if told and not told.taken_from else (),
        taken_from=row.taken_from,
    )


def _note(row: StepRow, told: StepNarrative | None) -> str:
    if row.error_code:
        return f"{row.error_code}: {row.reason}"
    if row.state == "waiting" and row.reason and row.reason != "approval":
        return row.reason
    if told is None:
        return row.meta.args_preview or row.meta.result_preview
    if told.llm_invocation is not None and told.result_preview:
        return told.result_preview  # what was said tells more than how many messages were new
    return row.meta.args_preview or told.args_preview or told.result_preview


def _took(told: StepNarrative) -> int:
    return told.ended_at - told.started_at if told.ended_at is not None else 0


def _segments(row: StepRow, told: StepNarrative, scale: Scale, until: int) -> tuple[Segment, ...]:
    found = []
    for wait in told.waits:
        kind: SegmentKind = "backoff" if wait.key.startswith("retry:") else "wait"
        end = wait.until or until
        came = min(end, max(wait.since, _came(wait, told) or end))
        found.append(_segment(kind, wait.since, came, scale))
        if end - came > _QUEUE_US:
            found.append(_segment("queue", came, end, scale))
    for attempt in told.attempts:
        unseen = attempt.ended_at is None
        end = attempt.ended_at or (until if row.state == "running" else attempt.started_at)
        kind = "doubt" if unseen and row.state == "unknown" else "failed" if attempt.code else "work"
        found.append(_segment(kind, attempt.started_at, end, scale))
    if not found:
        kind = "failed" if row.state in {"blocked", "failed"} else "work"
        end = until if told.ended_at is None and told.name.startswith("recipe.") else _end(told)
        found.append(_segment(kind, told.started_at, end, scale))
    return tuple(found)


def _came(wait: Waited, told: StepNarrative) -> int | None:
    """When what it waited for came, as far as that is recorded beside the wait itself."""
    if wait.due_at is not None and (wait.timed_out or wait.type == "timer"):
        return wait.due_at
    asked = next((one for one in told.confirmations if one.confirmation == wait.key), None)
    approved = asked is not None and len(asked.decisions) >= asked.approvals
    return asked.decisions[-1].at if asked is not None and approved else None


def _end(told: StepNarrative) -> int:
    return told.ended_at if told.ended_at is not None else told.started_at


def _segment(kind: SegmentKind, since: int, until: int, scale: Scale) -> Segment:
    x, end = scale.at(since), scale.at(max(since, until))
    width = max(_THIN, end - x)
    return Segment(kind, round(min(x, 1_000 - width), 1), round(width, 1))


def _is(row: StepRow, drifted: Container[str], only: Only) -> bool:
    match only:
        case "failed":
            return row.state in {"failed", "blocked"}
        case "waiting":
            return row.state in {"waiting", "unknown"}
        case "writes":
            return row.meta.risk_level not in {"", "read_only"}
        case "drift":
            return _is_drifted(row, drifted)
        case _:
            return True


def _text(row: StepRow) -> str:
    parts = (row.step, row.name, row.error_code, row.reason, row.meta.args_preview, row.meta.result_preview)
    return " ".join(parts).casefold()
