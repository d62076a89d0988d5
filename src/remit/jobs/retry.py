"""The steps that a new job takes over from one that failed or was cancelled: all but those that run again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from remit.jobs.state import JobHistory, is_undo, stuck_by
from remit.journal import kinds as k
from remit.journal.effects import effect_of
from remit.journal.lineage import LEFT_BEHIND, recorded_times

if TYPE_CHECKING:
    from remit.journal.event import Event

_LEFT_BEHIND: Final = (*LEFT_BEHIND, k.CompensationStarted, k.CompensationCompleted, k.StepCompensated)
"""Events that say how that job as a whole began, went and ended."""


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """What a new job begins with."""

    events: tuple[k.Payload, ...]
    times: tuple[int, ...]
    """When each of them was recorded first."""
    again: tuple[str, ...]
    """Steps that run again, in the order in which they began."""
    repeated: tuple[str, ...]
    """Those among them whose effect stands: it was had, or may have been (rule 21)."""


def failing_step(history: JobHistory) -> str:
    """The step that a job failed in; empty if its own code failed, or nothing did."""
    error = history.end.error if isinstance(history.end, k.JobFailed) else None
    return error.step if error is not None and error.step in history.places else ""


def take_over(events: Sequence[Event], history: JobHistory, step: str) -> TakenOver:
    """Return what a retry from `step` keeps of a job; an empty one keeps every step that has ended.

    Steps that were undone run again, and those that only waited. With each step run again all that began after it,
    except in branches beside it: a recipe asks for the next step when it knows the one before.
    """
    decoded = [k.decode(event.kind, event.data) for event in events]
    timed = [(payload, at) for payload, at in zip(decoded, recorded_times(events), strict=True) if payload is not None]
    order = list(dict.fromkeys(place for payload, _ in timed if (place := _place(payload)) in history.places))
    cuts = [place for place in order if place == step or place in history.undone or not _kept(history, place)]
    # What a model was asked builds on what it was asked before, and nodes of a plan on the results of others.
    strict = any(cut in history.models for cut in cuts) or (bool(step) and history.plan is not None)
    again = _again(order, cuts, strict=strict)
    repeated = tuple(place for place in order if place in again and acted(history, place))
    payloads = [
        (payload, at) for payload, at in timed if not isinstance(payload, _LEFT_BEHIND) and _belongs(payload, again)
    ]
    return TakenOver(
        events=tuple(_detached(payload) for payload, _ in payloads),
        times=tuple(at for _, at in payloads),
        again=tuple(place for place in order if place in again),
        repeated=repeated,
    )


def _place(payload: k.Payload) -> str:
    """Return the place of an effect that an event is about; what is said of the job as a whole may name a step too."""
    place: str = getattr(payload, "step", "")
    return "" if isinstance(payload, (*LEFT_BEHIND, k.StepArgsGiven)) else place


def _kept(history: JobHistory, place: str) -> bool:
    """Return whether a place has an outcome, or a call that may have happened (rule 3)."""
    if place in history.calls:
        return history.calls[place].ended or history.calls[place].unknown
    if place in history.models:
        return history.models[place].ended
    waits = [wait for (at, _), wait in history.waits.items() if at == place]
    if place in history.children:
        return history.children[place].refused is None
    if place in history.values or place in history.labeled:
        return True
    if place in history.compensations:
        return False
    return bool(waits) and all(wait.completed is not None for wait in waits)


def _again(order: Sequence[str], cuts: Iterable[str], *, strict: bool) -> frozenset[str]:
    places: set[str] = set()
    for cut in cuts:
        later = order[order.index(cut) :]
        places.update(place for place in later if strict or place == cut or not _beside(place, cut))
    return frozenset(places)


def _beside(step: str, other: str) -> bool:
    """Return whether two places lie in different branches of the same gather, so that neither waits for the other."""
    left, right = step.split("."), other.split(".")
    for index, (mine, its) in enumerate(zip(left, right, strict=False)):
        if mine != its:
            return index % 2 == 1 and index < min(len(left), len(right)) - 1
    return False


def acted(history: JobHistory, place: str) -> bool:
    """Return whether a call had its effect there, or may have, and it was not undone."""
    record, undone = history.calls.get(place), history.undone.get(place)
    if record is None or record.started is None or record.refused is not None:
        return False
    return effect_of(record.started, record.finished).stands and (undone is None or undone.outcome == "failed")


def _belongs(payload: k.Payload, again: frozenset[str]) -> bool:
    if isinstance(payload, k.JobWaiting) and payload.correlation_key.startswith(stuck_by("")):
        return False  # the recorded code could not continue; the new job finds out for itself
    if isinstance(payload, k.StepArgsGiven):
        return True  # whether its step runs again or not, these are what it is given
    place = _place(payload)
    if isinstance(payload, k.ChildEnded) and (payload.error or any(child.startswith(f"{place}.") for child in again)):
        return False  # it ends again
    return place not in again and not is_undo(place)


def _detached(payload: k.Payload) -> k.Payload:
    """An event without what points into the inbox of the job that it was recorded for."""
    if isinstance(payload, k.WaitCompleted) and payload.inbox_seq:
        return msgspec.structs.replace(payload, inbox_seq=0)
    return payload
