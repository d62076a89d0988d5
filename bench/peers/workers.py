"""Worker processes of a peer: each gets ready and waits; they begin together."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event, Semaphore
from typing import Any, NamedTuple

import psutil

from bench.peers.processes import Server

_PROCESSES = multiprocessing.get_context("spawn")


class Start(NamedTuple):
    """The start of all workers."""

    ready: Semaphore
    begin: Event

    def wait(self) -> None:
        """Say that this worker is ready, and wait for the others."""
        self.ready.release()
        self.begin.wait()


class Workers(NamedTuple):
    """Workers that are ready."""

    begin: Callable[[], None]
    processes: list[Server]

    def cpu(self) -> float:
        """Processor seconds of all of them so far."""
        return sum(process.cpu() for process in self.processes)


@contextmanager
def ready(count: int, work: Callable[..., None], *args: Any) -> Iterator[Workers]:
    """Start so many processes, each with its `Start` and `args`; end them afterwards."""
    start = Start(_PROCESSES.Semaphore(0), _PROCESSES.Event())
    with ExitStack() as stack:
        processes = [_PROCESSES.Process(target=work, args=(start, *args)) for _ in range(count)]
        for process in processes:
            process.start()
            stack.callback(process.join)
            stack.callback(process.kill)
        for _ in processes:
            start.ready.acquire()
        yield Workers(start.begin.set, [Server(psutil.Process(process.pid)) for process in processes])
