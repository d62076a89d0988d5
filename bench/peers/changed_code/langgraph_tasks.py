"""LangGraph's functional API: two tasks, then a wait; changed code resumes the run and tells what ran again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

_ran: list[str] = []


@task
def pay(cents: int) -> str:
    """Pay."""
    return _record(f"pay {cents}")


@task
def pay_now(cents: int) -> str:
    """Pay, under another name."""
    return _record(f"pay_now {cents}")


@task
def mail(cents: int) -> str:
    """Tell of the payment."""
    return _record(f"mail {cents}")


def _record(effect: str) -> str:
    _ran.append(effect)
    return effect


def _same() -> list[str]:
    return [pay(1).result(), mail(1).result()]


def _reorder() -> list[str]:
    return [mail(1).result(), pay(1).result()]


def _rename() -> list[str]:
    return [pay_now(1).result(), mail(1).result()]


def _arguments() -> list[str]:
    return [pay(2).result(), mail(1).result()]


def _insert() -> list[str]:
    return [pay_now(1).result(), pay(1).result(), mail(1).result()]


CHANGES: dict[str, Callable[[], list[str]]] = {
    "same": _same,
    "reorder": _reorder,
    "rename": _rename,
    "other arguments": _arguments,
    "insert": _insert,
}


def resumed(steps: Callable[[], list[str]]) -> str:
    """Record a run with the first code, resume it with these steps; say what ran again and what it returned."""
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "run"}}

    def program(body: Callable[[], list[str]]) -> Any:
        @entrypoint(checkpointer=saver)
        def run(_: int) -> list[str]:
            results = body()
            interrupt("wait")
            return results

        return run

    program(_same).invoke(1, config)
    _ran.clear()
    result = program(steps).invoke(Command(resume="go on"), config)
    return f"ran again: {_ran}; the run returned {result}"


if __name__ == "__main__":
    for change, steps in CHANGES.items():
        print(f"{change}: {resumed(steps)}")
