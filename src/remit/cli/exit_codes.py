"""The meaning of the command's exit status, in one table; docs/cli.md and `remit --help` show it."""

from __future__ import annotations

from typing import Final

OK: Final = 0
ERROR: Final = 1
USAGE: Final = 2
FAILED: Final = 3
WAITING: Final = 4
CANCELLED: Final = 5
DIVERGED: Final = 6
DAMAGED: Final = 7
UNCHECKED: Final = 8
INTERRUPTED: Final = 130

MEANINGS: Final[dict[int, str]] = {
    OK: "done",
    ERROR: "an error in the journal, the machine or Remit, or a stuck job",
    USAGE: "the command line, a setting, a plan or a name is invalid",
    FAILED: "the job failed",
    WAITING: "the job waits: for an approval, a signal, a decision or a time",
    CANCELLED: "the job was cancelled",
    DIVERGED: "the replay departed from the record, a call would be refused today, or rules decide otherwise",
    DAMAGED: "the journal is damaged",
    UNCHECKED: "the journal cannot be checked here, nor written to: the key that it is sealed under is missing",
    INTERRUPTED: "stopped from outside (Ctrl-C, SIGTERM); the job can be resumed",
}
"""Every status and what it means."""

OF_STATE: Final[dict[str, int]] = {"completed": OK, "failed": FAILED, "cancelled": CANCELLED}
"""The exit status of each final state of a job; any other state is WAITING."""


def of_state(state: str) -> int:
    """The status for a job that was left in this state."""
    return OF_STATE.get(state, WAITING)
