"""Where a job stands, in a word and a sentence: whether it is well, what it waits for, and what someone can do."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.clock import SECOND, age, duration
from remit.codes import Code
from remit.jobs.state import TIMERS
from remit.journal.leases import Owner

if TYPE_CHECKING:
    from remit.record.views import JobRow

Tone = Literal["quiet", "busy", "asks", "bad"]
"""`quiet`: nothing to do · `busy`: it goes on by itself · `asks`: a person has to answer · `bad`: one has to look."""
_PATIENCE_S: Final = 30
"""Seconds after which a due job that no worker takes counts as without a worker."""
_ENDS: Final = {
    "completed": ("completed", "quiet"),
    "failed": ("failed", "bad"),
    "cancelled": ("cancelled", "quiet"),
}


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job stands."""

    word: str
    """Such as `waiting for a person`."""
    tone: Tone
    reason: str = ""
    """A sentence; empty if the word says it all."""
    todo: str = ""
    """The advice; empty: nothing."""


def standing(row: JobRow, now: int) -> JobState:
    """Return where a job stands at the instant `now`."""
    state = shown_state(row)
    if state in _ENDS:
        word, tone = _ENDS[state]
        return JobState(word=word, tone="bad" if tone == "bad" else "quiet", reason=_code(row))
    match state:
        case "stuck":
            return JobState(
                word="stuck",
                tone="bad",
                reason=f"The installed code cannot continue it: {row.code}.",
                todo="Correct the code or the settings, then resume it.",
            )
        case "stopped":
            return JobState(
                word="stopped",
                tone="bad",
                reason=f"Its worker, {holder(row)}, is gone." if row.worker else "No worker holds it.",
                todo="A worker takes it once its lease lapses; `remit resume` takes it now.",
            )
        case "running":
            return JobState(word="running", tone="busy", reason=f"{holder(row).capitalize()} works on it.")
        case "pending":
            return _pending(row, now)
        case _:
            return _waiting(row, now)


def _code(row: JobRow) -> str:
    if row.code == Code.RECORD_PRUNED.name:
        return "Its record was pruned; a stub is left."
    return f"It ended with {row.code}." if row.code else ""


def _pending(row: JobRow, now: int) -> JobState:
    due = row.due_at
    if due is not None and due > now:
        return JobState(word="scheduled", tone="busy", reason=f"It starts in {duration(due - now)}.")
    since = due if due is not None else row.created_at
    if now - since < _PATIENCE_S * SECOND:
        return JobState(word="queued", tone="busy", reason="It waits for a worker.")
    which = f" that knows {row.route}" if row.route else ""
    return JobState(
        word="no worker",
        tone="bad",
        reason=f"No worker{which} has taken it for {age(now - since)}.",
        todo="Start one: `remit worker`.",
    )


def _waiting(row: JobRow, now: int) -> JobState:
    words = row.waiting_for
    if "decision on step" in words:
        return JobState(
            word="uncertain",
            tone="asks",
            reason="It is unknown whether a call took effect.",
            todo="Find out, then resolve it.",
        )
    if "confirmation" in words:
        return JobState(
            word="waiting for a person", tone="asks", reason="It asks before it continues.", todo="Answer it."
        )
    in_time = f" in {duration(row.due_at - now)}" if row.due_at is not None and row.due_at > now else " soon"
    if TIMERS[1] in words:
        return JobState(word="retrying", tone="bad", reason=f"A call failed and will be retried{in_time}.")
    if TIMERS[2] in words:
        return JobState(word="waiting", tone="busy", reason=f"It waits for {words}; it comes{in_time}.")
    if TIMERS[0] in words:
        return JobState(word="waiting", tone="busy", reason=f"A timer ends{in_time}.")
    return JobState(word="waiting", tone="busy", reason=f"It waits for {words}." if words else "It waits.")


STATES: Final = ("pending", "running", "stopped", "waiting", "stuck", "completed", "failed", "cancelled")
"""The states that people see."""
_RECORDED: Final = {"stopped": ("running", "waiting"), "stuck": ("waiting",)}


def shown_state(row: JobRow) -> str:
    """The state; `stopped` where a job lost its worker or was given up, `stuck` where no code at hand can go on.

    A job that was given up between two steps waits for nothing.
    """
    if row.stuck:
        return "stuck"
    left = row.state == "running" and not is_held(row)
    return "stopped" if left or (row.state == "waiting" and not row.waiting_for) else row.state


def recorded(wanted: Iterable[str]) -> tuple[str, ...]:
    """The recorded states that jobs have which people see in these states."""
    return tuple(dict.fromkeys(each for state in wanted for each in _RECORDED.get(state, (state,))))


def is_in(row: JobRow, wanted: Collection[str]) -> bool:
    """Return whether a job is in one of these states, as recorded or as people see it; in any if there are none."""
    return not wanted or row.state in wanted or shown_state(row) in wanted


def is_held(row: JobRow) -> bool:
    """Return whether a process that may still be alive works on it."""
    if not row.worker:
        return False
    owner = Owner.parse(row.worker)
    return owner is None or not owner.dead()


def holder(row: JobRow) -> str:
    """Return who works on it, in words."""
    return worker_words(row.worker)


def worker_words(recorded: str) -> str:
    """A worker as it was recorded, in words."""
    owner = Owner.parse(recorded)
    return owner.words if owner else recorded


def about(row: JobRow) -> str:
    """Return what there is to say of a job in a list."""
    if row.state == "waiting" and row.waiting_for and not row.stuck:
        return row.waiting_for
    title = row.title.removeprefix(f"{row.name} ")
    return f"{row.code}  {title}" if row.code else title
