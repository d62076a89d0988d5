"""A DBOS workflow of trivial steps, whatever database it is kept in; every step is kept before the next begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench.peers.program import EACH, LONG, RUNS, STEPS, Meter

_replaying: list[Meter] = []


@DBOS.step()
def step(number: int) -> int:
    """Give the number back."""
    return number


@DBOS.workflow()
def run(count: int) -> int:
    """Steps, one after the other; where a replay is measured, from here on."""
    for meter in _replaying:
        meter.start()
    for number in range(count):
        step(number)
    for meter in _replaying:
        meter.stop(count)
    return count


def sequential(meter: Meter) -> None:
    """One run."""
    meter.start()
    run(STEPS)
    meter.stop(STEPS)


def concurrent(meter: Meter) -> None:
    """Many runs at once."""
    meter.start()
    handles: list[Any] = [DBOS.start_workflow(run, EACH) for _ in range(RUNS)]
    for handle in handles:
        handle.get_result(polling_interval_sec=0.01)
    meter.stop(RUNS * EACH)


def replay(meter: Meter) -> None:
    """A fork from after the last step: all of them are given back."""
    with SetWorkflowID("original"):
        run(STEPS)
    _replaying.append(meter)
    DBOS.fork_workflow("original", STEPS + 1).get_result(polling_interval_sec=0.01)


def fork(meter: Meter) -> None:
    """A fork at the last step of a long run; one of a short run before makes everything warm."""
    for count, name in ((1, "short"), (LONG, "long")):
        with SetWorkflowID(name):
            run(count)
        meter.start()
        forked = DBOS.fork_workflow(name, count)
        if count == LONG:
            meter.end()
        forked.get_result(polling_interval_sec=0.01)


def launched(config: DBOSConfig, workload: Callable[[Meter], None], server: Callable[[], float] | None = None) -> None:
    """Measure a workload under a configuration; `server` gives the processor seconds of a database server."""
    DBOS(config={"name": "bench", "log_level": "ERROR", **config})
    DBOS.launch()
    run(1)
    workload(Meter(server))
    DBOS.destroy()


WORKLOADS = {"sequential": sequential, "concurrent": concurrent, "replay": replay, "fork": fork}
