"""The executors of a project, by name: those of workflow.toml, and the coding agents that Remit knows."""

from __future__ import annotations

from typing import Final, NamedTuple

from remit.codes import Code
from remit.errors import UsageError
from remit.redact import line
from remit.work.executors.port import Executor
from remit.work.executors.program import ProgramExecutor
from remit.work.workflow import ExecutorTable, Workflow

MANUAL: Final = "manual"
"""The executor that is a person: the run waits for a result that someone hands in."""


class Hand(NamedTuple):
    """An executor, and the terms on which it works."""

    name: str
    table: ExecutorTable
    executor: Executor


def hand_of(workflow: Workflow, name: str) -> Hand:
    """Return an executor by its name. Raise UsageError (WORK_INVALID) for one that is not known."""
    table = workflow.executors.get(name)
    if table is None:
        known = ", ".join(sorted({*workflow.executors, MANUAL}))
        why = f"workflow.toml names no executor {line(name, 60)}"
        raise UsageError(why, code=Code.WORK_INVALID, remedy=f"There are: {known}.")
    return Hand(name, table, ProgramExecutor((table.program, *table.args)))


def hands_of(workflow: Workflow) -> list[Hand]:
    """Return every executor of a project. Raise UsageError (WORK_INVALID)."""
    return [hand_of(workflow, name) for name in workflow.executors]
