"""LangGraph on its SQLite checkpointer, which uses WAL; every step is kept before the next begins."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from bench.peers.program import EACH, RUNS, STEPS, Meter, asked


class _State(TypedDict):
    number: int
    count: int


def _saver(folder: Path) -> Any:
    return SqliteSaver(sqlite3.connect(folder / "langgraph.db", check_same_thread=False))


def _graph(folder: Path) -> Any:
    """A step that is taken until there were enough; naming the next step itself is faster than a conditional edge."""

    def step(state: _State) -> Any:
        number = state["number"] + 1
        return Command(update={"number": number}, goto="step" if number < state["count"] else END)

    graph: Any = StateGraph(_State)
    graph.add_node("step", step, destinations=("step", END))
    graph.add_edge(START, "step")
    return graph.compile(checkpointer=_saver(folder))


def _config(thread: str, count: int = 1) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, "recursion_limit": count + 10}


def sequential(folder: Path) -> None:
    """One run."""
    graph, meter = _graph(folder), Meter()
    graph.invoke({"number": 0, "count": 1}, _config("warm"), durability="sync")
    meter.start()
    graph.invoke({"number": 0, "count": STEPS}, _config("run", STEPS), durability="sync")
    meter.stop(STEPS)


def concurrent(folder: Path) -> None:
    """Many runs; more threads than one only get in each other's way."""
    graph, meter = _graph(folder), Meter()
    graph.invoke({"number": 0, "count": 1}, _config("warm"), durability="sync")
    configs = [{**_config(f"run-{number}", EACH), "max_concurrency": THREADS} for number in range(RUNS)]
    meter.start()
    graph.batch([{"number": 0, "count": EACH}] * RUNS, configs, durability="sync")
    meter.stop(RUNS * EACH)


def replay(folder: Path) -> None:
    """Tasks of the functional API, given back from the checkpoint when the run is resumed."""

    @task
    def step(number: int) -> int:
        return number

    @entrypoint(checkpointer=_saver(folder))
    def run(count: int) -> int:
        for number in range(count):
            step(number).result()
        interrupt("wait")
        return count

    meter = Meter()
    run.invoke(STEPS, _config("run"), durability="sync")
    meter.start()
    run.invoke(Command(resume="go on"), _config("run"), durability="sync")
    meter.stop(STEPS)


THREADS = 1

if __name__ == "__main__":
    asked(
        {"sequential": sequential, "concurrent": concurrent, "replay": replay},
        lambda workload, folder: workload(folder),
    )
