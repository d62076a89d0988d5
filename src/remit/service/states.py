"""A job's state as people see it: whether someone still works on it is part of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from remit.engines.owner import Owner

if TYPE_CHECKING:
    from remit.service.views import JobRow


STATES: Final = ("pending", "running", "stopped", "waiting", "stuck", "completed", "failed", "cancelled")
"""The states that people see."""
_RECORDED: Final = {"stopped": "running", "stuck": "waiting"}


def shown_state(row: JobRow) -> str:
    """The state, `stopped` where a running job has lost its worker, `stuck` where the code at hand cannot go on."""
    if row.state == "running" and not is_held(row):
        return "stopped"
    return "stuck" if row.state == "waiting" and row.code else row.state


def recorded(wanted: Iterable[str]) -> tuple[str, ...]:
    """The recorded states that jobs have which people see in these states."""
    return tuple(dict.fromkeys(_RECORDED.get(state, state) for state in wanted))


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
    if row.state == "waiting" and not row.code:
        return row.waiting_for
    title = row.title.removeprefix(f"{row.name} ")
    return f"{row.code}  {title}" if row.code else title
