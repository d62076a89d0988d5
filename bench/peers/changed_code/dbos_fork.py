"""DBOS on SQLite: a workflow of two steps is recorded, then forked from its end with changed code."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from dbos import DBOS, SetWorkflowID

_ran: list[str] = []


@DBOS.step()
def pay(cents: int) -> str:
    """Pay."""
    return _record(f"pay {cents}")


@DBOS.step()
def pay_now(cents: int) -> str:
    """Pay, under another name."""
    return _record(f"pay_now {cents}")


@DBOS.step()
def mail(cents: int) -> str:
    """Tell of the payment."""
    return _record(f"mail {cents}")


def _record(effect: str) -> str:
    _ran.append(effect)
    return effect


CHANGES: dict[str, Callable[[], list[str]]] = {
    "same": lambda: [pay(1), mail(1)],
    "reorder": lambda: [mail(1), pay(1)],
    "rename": lambda: [pay_now(1), mail(1)],
    "other arguments": lambda: [pay(2), mail(1)],
    "insert": lambda: [pay_now(1), pay(1), mail(1)],
}
_code = ["same"]
"""The change that is in force."""


@DBOS.workflow()
def run() -> list[str]:
    """Run the steps of the code that is in force."""
    return CHANGES[_code[0]]()


def forked(change: str) -> str:
    """Fork the recorded run from its end under a change, and say what ran again and what the fork returned."""
    _code[0] = change
    _ran.clear()
    try:
        result = f"the run returned {DBOS.fork_workflow('original', 3).get_result(polling_interval_sec=0.01)}"
    except Exception as error:  # noqa: BLE001 - every refusal is shown
        result = f"{type(error).__name__}: {error}"
    return f"ran again: {_ran}; {result}"


def main(folder: Path) -> None:
    """Record, change, fork; then list the columns in which steps are kept."""
    database = folder / "dbos.db"
    DBOS(config={"name": "changed", "log_level": "CRITICAL", "system_database_url": f"sqlite:///{database}"})
    DBOS.launch()
    with SetWorkflowID("original"):
        run()
    for change in CHANGES:
        print(f"{change}: {forked(change)}")
    DBOS.destroy()
    with sqlite3.connect(database) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(operation_outputs)")]
    print(f"columns of operation_outputs: {', '.join(columns)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
