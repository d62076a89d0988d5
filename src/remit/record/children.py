"""Where child recipes stand: as their end says, or else as their steps and what came after them tell. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from remit.jobs.state import History
from remit.journal.kinds import JobFailed
from remit.record.step import StepState

_BUSY: Final[tuple[StepState, ...]] = ("unknown", "waiting", "running")
"""The states that a child has as long as one of its steps has; the first counts most."""


class Child(NamedTuple):
    """A child recipe."""

    state: StepState
    until: int
    """When the last of its steps was heard of, in microseconds since the Unix epoch."""


def children(history: History, steps: Collection[tuple[str, StepState, int]]) -> dict[str, Child]:
    """Each child, by its place; `steps` are those of the job: place, state, and when it was heard of last."""
    found = child_states(history, ((step, state) for step, state, _ in steps))
    until = dict.fromkeys(found, 0)
    for step, _, last in steps:
        place = step
        while place:
            if place in until:
                until[place] = max(until[place], last)
            place = place.rpartition(".")[0]
    return {place: Child(state, until[place]) for place, state in found.items()}


def child_states(history: History, states: Iterable[tuple[str, str]]) -> dict[str, StepState]:
    """Where each child stands, by its place; `states` are those of the job's steps, by place."""
    if not history.children:
        return {}
    busy: dict[str, StepState] = {}
    newest: dict[str, int] = {}
    for step, state in states:
        own, place = "" if step in history.children else state, step
        while place:
            above, _, number = place.rpartition(".")
            if number.isdigit():
                newest[above] = max(newest.get(above, 0), int(number))
            for kind in _BUSY:
                if above and kind in {own, busy.get(above)}:
                    busy[above] = kind
                    break
            place = above
    return {child: _state(child, busy, newest, history) for child in history.children}


def _state(child: str, busy: Mapping[str, StepState], newest: Mapping[str, int], history: History) -> StepState:
    end, returned = history.end, history.returned.get(child)
    if returned is not None:
        return "failed" if returned.error else "ok"
    if child in busy:
        return busy[child]
    if end is not None:
        failed_at = end.error.step if isinstance(end, JobFailed) else ""
        return "failed" if failed_at == child or failed_at.startswith(f"{child}.") else "ok"
    above, _, number = child.rpartition(".")
    return "ok" if number.isdigit() and newest.get(above, 0) > int(number) else "running"
