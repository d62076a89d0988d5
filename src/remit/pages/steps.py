"""The steps of a job as rows: where each stands, and a bar of what it did when."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Final, Literal

import msgspec

from remit.pages.page import dollars
from remit.pages.timeline import WIDTH, Scale, SegmentKind
from remit.record.step import StepNarrative, Waited
from remit.record.story import EventStory
from remit.record.views import StepRow

ALIKE: Final = 5
"""So many successes in a row that differ in nothing are shown as one row."""
_THIN: Final = 8.0
"""Units that a bar takes at least, so that it can be seen."""
_QUEUE_US: Final = 1_000
"""Microseconds up to which a worker took it at once."""
MARKS: Final = {
    "ok": ("✓", "quiet"),
    "failed": ("✗", "bad"),
    "blocked": ("⊘", "bad"),
    "running": ("▸", "busy"),
    "unknown": ("?", "asks"),
    "waiting": ("◷", "asks"),
}


class BarSegment(msgspec.Struct, frozen=True):
    """A piece of a bar, on the scale of the page."""

    kind: SegmentKind
    x: float
    width: float


class StepListRow(msgspec.Struct, frozen=True, kw_only=True):
    """A step, or several alike."""

    step: str
    """The step's place; the first one's, for several."""
    number: int = 1
    """The number of steps that it stands for."""
    name: str
    state: str
    mark: str
    tone: str
    depth: int
    """The number of branches that it is inside."""
    note: str
    """Why it is as it is, or what it was given."""
    used: str
    """Tokens of a model's answer, and an estimate in dollars."""
    rule: str
    version: str
    drift: bool
    """Whether its tool or model is another one today."""
    attempts: int
    took: int
    """Microseconds; 0: no time is recorded."""
    segments: tuple[BarSegment, ...]
    spoken: str
    """The bar in words."""
    taken_from: str
    """The job that recorded it, where a retry took it over; such a step has no bar."""


Only = Literal["", "failed", "waiting", "writes", "models", "drift"]


Group = list[StepRow]
"""Steps that one row stands for."""
Told = Callable[[str], StepNarrative | None]
"""Tells of a step."""


def chosen(rows: Iterable[StepRow], drifted: Container[str], only: Only, find: str) -> list[StepRow]:
    """The steps that are asked for: of one sort, or with a text in place, name, arguments, result or reason."""
    wanted = find.casefold()
    return [row for row in rows if _is(row, drifted, only) and (not wanted or wanted in _text(row))]


def drifted_in(story: EventStory) -> frozenset[str]:
    """The names of tools, and the places of questions to models, that are others today."""
    return frozenset(drift.step or drift.subject for drift in story.drifts)


def _is_drifted(row: StepRow, drifted: Container[str]) -> bool:
    return row.step in drifted or row.meta.tool_name in drifted


def groups(rows: Sequence[StepRow], drifted: Container[str], opened: Container[str]) -> list[Group]:
    """Runs of alike successes together, unless their first step is `opened`; every other step, and each failure, alone.

    `drifted` holds what is another one today (`drifted_in`).
    """
    step_groups: list[Group] = []
    for alike, group in groupby(rows, key=lambda row: _alike(row, drifted)):
        run = list(group)
        if alike and len(run) >= ALIKE and run[0].step not in opened:
            step_groups.append(run)
        else:
            step_groups += [[row] for row in run]
    return step_groups


def lines(
    shown: Iterable[Group], narrative_of: Told, scale: Scale, until: int, queued: tuple[str, int, int] | None = None
) -> list[StepListRow]:
    """A row for each group; `queued` says before which step, and from when to when, the job waited for a worker."""
    step_lines = []
    for group in shown:
        steps = [step for row in group if (step := narrative_of(row.step)) is not None]
        if steps:
            step_lines.append(_row(steps[0], scale, until) if len(steps) == 1 else _folded(steps, scale, until))
    if queued is None:
        return step_lines
    first, since, end = queued
    queue = _segment("queue", since, end, scale)
    return [
        msgspec.structs.replace(row, segments=(queue, *row.segments)) if row.step == first else row
        for row in step_lines
    ]


def _alike(row: StepRow, drifted: Container[str]) -> tuple[str, int] | None:
    plain = row.state == "ok" and row.attempt <= 1 and not _is_drifted(row, drifted)
    return (row.name + row.taken_from, _depth(row.step)) if plain else None


def _depth(step: str) -> int:
    return min(4, step.count(".") // 2)


def _folded(steps: Sequence[StepNarrative], scale: Scale, until: int) -> StepListRow:
    row = _row(steps[0], scale, until)
    joined: tuple[BarSegment, ...] = ()
    if not row.taken_from:
        joined = (_segment("work", min(step.started_at for step in steps), max(map(_end, steps)), scale),)
    spoken = f"{len(steps)} steps {row.name}: all {row.state}"
    took = sum(step.duration_us or _took(step) for step in steps)
    return msgspec.structs.replace(row, number=len(steps), note="", used="", segments=joined, took=took, spoken=spoken)


def _row(step: StepNarrative, scale: Scale, until: int) -> StepListRow:
    mark, tone = MARKS[step.state]
    attempts = len(step.attempts) or 1
    name = step.name.removeprefix("tool.")
    tries = f", {attempts} attempts" if attempts > 1 else ""
    return StepListRow(
        step=step.step,
        name=name,
        spoken=f"step {step.step} {name}: {step.state}{tries}",
        state=step.state,
        mark=mark,
        tone=tone,
        depth=_depth(step.step),
        note=_note(step),
        used=_used(step),
        rule=step.rule_id,
        version=step.tool_invocation.version if step.tool_invocation else "",
        drift=bool(step.drifts),
        attempts=attempts,
        took=step.duration_us or _took(step),
        segments=_segments(step, scale, until) if not step.taken_from else (),
        taken_from=step.taken_from,
    )


def _note(step: StepNarrative) -> str:
    if step.code:
        return f"{step.code}: {step.reason}"
    if step.state == "waiting" and step.reason and step.reason != "approval":
        return step.reason
    if step.llm_invocation is not None and step.result_preview:
        return step.result_preview  # what was said tells more than how many messages were new
    return step.args_preview or step.result_preview


def _used(step: StepNarrative) -> str:
    model = step.llm_invocation
    if model is None or not model.token_count:
        return ""
    return f"{model.token_count:,} tokens" + (f", {dollars(model.cost)}" if model.cost is not None else "")


def _took(narrative: StepNarrative) -> int:
    return narrative.ended_at - narrative.started_at if narrative.ended_at is not None else 0


def _segments(narrative: StepNarrative, scale: Scale, until: int) -> tuple[BarSegment, ...]:
    pieces = list[tuple[SegmentKind, int, int]]()
    for wait in narrative.waits:
        kind: SegmentKind = "backoff" if wait.key.startswith("retry:") else "wait"
        end = wait.until or until
        came = min(end, max(wait.since, _came(wait, narrative) or end))
        pieces.append((kind, wait.since, came))
        if end - came > _QUEUE_US:
            pieces.append(("queue", came, end))
    for attempt in narrative.attempts:
        unseen = attempt.ended_at is None
        end = attempt.ended_at or (until if narrative.state == "running" else attempt.started_at)
        kind = "doubt" if unseen and narrative.state == "unknown" else "failed" if attempt.code else "work"
        pieces.append((kind, attempt.started_at, end))
    if not pieces:
        kind = "failed" if narrative.state in {"blocked", "failed"} else "work"
        end = until if narrative.ended_at is None and narrative.name.startswith("recipe.") else _end(narrative)
        pieces.append((kind, narrative.started_at, end))
    return tuple(_segment(kind, since, end, scale) for kind, since, end in pieces if scale.covers(since, end))


def _came(wait: Waited, narrative: StepNarrative) -> int | None:
    """Return when what it waited for came, as far as that is recorded beside the wait itself."""
    if wait.due_at is not None and (wait.timed_out or wait.type == "timer"):
        return wait.due_at
    confirmation = next((question for question in narrative.confirmations if question.confirmation == wait.key), None)
    approved = confirmation is not None and len(confirmation.decisions) >= confirmation.approvals
    return confirmation.decisions[-1].at if confirmation is not None and approved else None


def _end(narrative: StepNarrative) -> int:
    return narrative.ended_at if narrative.ended_at is not None else narrative.started_at


def _segment(kind: SegmentKind, since: int, until: int, scale: Scale) -> BarSegment:
    x, end = scale.at(since), scale.at(max(since, until))
    width = max(_THIN, end - x)
    return BarSegment(kind, round(min(x, 1_000 - width), 1), round(width, 1))


def _is(row: StepRow, drifted: Container[str], only: Only) -> bool:
    match only:
        case "failed":
            return row.state in {"failed", "blocked"}
        case "waiting":
            return row.state in {"waiting", "unknown"}
        case "writes":
            return row.meta.risk_level not in {"", "read_only"}
        case "models":
            return row.name.startswith("model.")
        case "drift":
            return _is_drifted(row, drifted)
        case _:
            return True


def _text(row: StepRow) -> str:
    parts = (row.step, row.name, row.error_code, row.reason, row.meta.args_preview, row.meta.result_preview)
    return " ".join(parts).casefold()


BUCKETS: Final = 200
"""Pieces of a strip at most."""
_JUMPS: Final = 5
"""Rows of a kind that are named beside it."""
_WORST: Final[dict[str, tuple[int, SegmentKind]]] = {
    "failed": (3, "failed"),
    "blocked": (3, "failed"),
    "unknown": (2, "doubt"),
    "waiting": (1, "wait"),
}
_FINE: Final[tuple[int, SegmentKind]] = (0, "work")


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Rows side by side, as one piece of the strip."""

    x: float
    width: float
    first: int
    """The number of its first row."""
    last: int
    kind: SegmentKind
    """That of the worst of them."""
    height: float
    """By how many steps it stands for, from 0 to 1."""


class Jump(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one state, and the first of them."""

    state: str
    number: int
    rows: tuple[int, ...]


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """A long list at a glance."""

    buckets: tuple[Bucket, ...]
    jumps: tuple[Jump, ...]


def strip_of(groups: Sequence[Group]) -> Strip:
    """The strip of all rows; each group is one."""
    count = min(BUCKETS, len(groups))
    edges = [len(groups) * number // count for number in range(count + 1)] if count else []
    weights = [sum(map(len, groups[start:end])) for start, end in pairwise(edges)]
    most = max(weights, default=1)
    buckets = tuple(
        Bucket(
            x=round(WIDTH * number / count, 2),
            width=round(WIDTH / count, 2),
            first=start + 1,
            last=end,
            kind=max((_WORST.get(group[0].state, _FINE) for group in groups[start:end]), default=_FINE)[1],
            height=round(max(0.25, weights[number] / most), 2),
        )
        for number, (start, end) in enumerate(pairwise(edges))
    )
    rows: dict[str, list[int]] = {}
    for number, group in enumerate(groups, 1):
        if group[0].state in _WORST:
            rows.setdefault(group[0].state, []).append(number)
    jumps = (
        Jump(state=state, number=len(step_rows), rows=tuple(step_rows[:_JUMPS])) for state, step_rows in rows.items()
    )
    return Strip(buckets=buckets, jumps=tuple(jumps))
