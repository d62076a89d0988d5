"""A job's state as people see it: whether someone still works on it is part of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from remit.journal.owner import Owner

if TYPE_CHECKING:
    from remit.record.views import JobRow


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
    """Whether a job is in one of these states, as recorded or as people see it; in any if there are none."""
    return not wanted or row.state in wanted or shown_state(row) in wanted


def is_held(row: JobRow) -> bool:
    """Whether a process that may still be alive works on it."""
    if not row.worker:
        return False
    owner = Owner.parse(row.worker)
    return owner is None or not owner.dead()


def holder(row: JobRow) -> str:
    """Who works on it, in words."""
    return worker_words(row.worker)


def worker_words(recorded: str) -> str:
    """A worker as it was recorded, in words."""
    owner = Owner.parse(recorded)
    return owner.words if owner else recorded


def about(row: JobRow) -> str:
    """What there is to say of a job in a list."""
    if row.state == "waiting" and not row.stuck:
        return row.waiting_for
    title = row.title.removeprefix(f"{row.name} ")
    return f"{row.code}  {title}" if row.code else title
