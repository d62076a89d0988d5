"""Where a job stands, in a word and a sentence: whether it is well, what it waits for, and what someone can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.clock import SECOND, age, duration
from remit.jobs.state import TIMERS
from remit.record.states import holder, shown_state

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


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job stands."""

    word: str
    """Such as `waiting for a person`."""
    tone: Tone
    why: str = ""
    """A sentence; empty if the word says it all."""
    todo: str = ""
    """What to do; empty: nothing."""


def standing(row: JobRow, now: int) -> Standing:
    """Where a job stands at the instant `now`."""
    state = shown_state(row)
    if state in _ENDS:
        word, tone = _ENDS[state]
        return Standing(word=word, tone="bad" if tone == "bad" else "quiet", why=_code(row))
    match state:
        case "stuck":
            return Standing(
                word="stuck",
                tone="bad",
                why=f"The installed code cannot continue it: {row.code}.",
                todo="Correct the code or the settings, then resume it.",
            )
        case "stopped":
            return Standing(
                word="stopped",
                tone="bad",
                why=f"Its worker, {holder(row)}, is gone." if row.worker else "No worker holds it.",
                todo="A worker takes it once its lease lapses; `remit resume` takes it now.",
            )
        case "running":
            return Standing(word="running", tone="busy", why=f"{holder(row).capitalize()} works on it.")
        case "pending":
            return _pending(row, now)
        case _:
            return _waiting(row, now)


def _code(row: JobRow) -> str:
    return f"It ended with {row.code}." if row.code else ""


def _pending(row: JobRow, now: int) -> Standing:
    due = row.due_at
    if due is not None and due > now:
        return Standing(word="scheduled", tone="busy", why=f"It starts in {duration(due - now)}.")
    since = due if due is not None else row.created_at
    if now - since < _PATIENCE_S * SECOND:
        return Standing(word="queued", tone="busy", why="It waits for a worker.")
    which = f" that knows {row.route}" if row.route else ""
    return Standing(
        word="no worker",
        tone="bad",
        why=f"No worker{which} has taken it for {age(now - since)}.",
        todo="Start one: `remit worker`.",
    )


def _waiting(row: JobRow, now: int) -> Standing:
    words = row.waiting_for
    if "decision on step" in words:
        return Standing(
            word="uncertain",
            tone="asks",
            why="It is unknown whether a call took effect.",
            todo="Find out, then resolve it.",
        )
    if "confirmation" in words:
        return Standing(word="waiting for a person", tone="asks", why="It asks before it continues.", todo="Answer it.")
    in_time = f" in {duration(row.due_at - now)}" if row.due_at is not None and row.due_at > now else " soon"
    if TIMERS[1] in words:
        return Standing(word="retrying", tone="bad", why=f"A call failed and will be retried{in_time}.")
    if TIMERS[0] in words:
        return Standing(word="waiting", tone="busy", why=f"A timer ends{in_time}.")
    return Standing(word="waiting", tone="busy", why=f"It waits for {words}." if words else "It waits.")
