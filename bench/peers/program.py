"""What every peer's program does the same: find out what is asked, measure it, print one line of JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

Work = TypeVar("Work")

STEPS, RUNS, EACH = 1_000, 64, 50
"""One run of so many steps, or so many runs at once of so many steps each."""
JOBS, MOST = 128, 4
"""Runs of `EACH` steps that are shared by up to so many worker processes."""
LONG = 10_000
"""Steps of the run that is forked."""
TICKETS, WORKERS = 256, 64
"""Jobs in a queue, and how many are worked on at once."""
TURNS = 100
"""Answers of an agent's model that make calls."""


class Meter:
    """Measures steps per second, and the processor time of this program and of a server beside it.

    `server` gives the seconds of processor time that a server has used.
    """

    def __init__(self, server: Callable[[], float] | None = None) -> None:
        self._server = server
        self._began = self._cpu = 0.0

    def start(self) -> None:
        """Begin; to be called when everything is warm."""
        self._cpu = self._used()
        self._began = time.perf_counter()

    def stop(self, steps: int) -> None:
        """End after so many steps, and print what they took."""
        seconds = time.perf_counter() - self._began
        cpu = self._used() - self._cpu
        print(json.dumps({"rate": steps / seconds, "cpu_us": cpu * 1e6 / steps}), flush=True)

    def end(self) -> None:
        """End, and print the milliseconds since it began."""
        print(json.dumps({"rate": (time.perf_counter() - self._began) * 1e3}), flush=True)

    def _used(self) -> float:
        own = resource.getrusage(resource.RUSAGE_SELF)
        return own.ru_utime + own.ru_stime + (self._server() if self._server else 0.0)


def asked(workloads: Mapping[str, Work], run: Callable[[Work, Path], None]) -> None:
    """Run the workload that the command line names, in the folder that it names."""
    workload, folder = sys.argv[1:]
    if workload in workloads:
        run(workloads[workload], Path(folder))
    else:
        missing("it has nothing like it")


def missing(reason: str) -> None:
    """Say why nothing can be measured."""
    print(json.dumps({"missing": reason}), flush=True)
