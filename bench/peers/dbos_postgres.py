"""DBOS on PostgreSQL, with the server beside it: in one process, or as workers on a queue."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient

from bench.peers.dbos_run import WORKLOADS, launched, run
from bench.peers.postgres import Database, database
from bench.peers.program import EACH, JOBS, MOST, Meter, asked
from bench.peers.workers import Start, ready

_QUEUE, _VERSION = "bench", "1"


def _work(start: Start, url: str, concurrency: int) -> None:
    DBOS(
        config={
            "name": _QUEUE,
            "log_level": "ERROR",
            "system_database_url": url,
            "executor_id": f"worker-{os.getpid()}",
            "application_version": _VERSION,
        }
    )
    DBOS.listen_queues([_QUEUE])
    DBOS.launch()
    DBOS.register_queue(_QUEUE, worker_concurrency=concurrency, polling_interval_sec=0.05, on_conflict="always_update")
    run(1)
    start.wait()
    threading.Event().wait()


def workers(count: int, place: Database) -> None:
    """Measure many runs that are given to so many processes; DBOS hands them out."""
    with ready(count, _work, place.url, JOBS // count) as processes:
        client = DBOSClient(system_database_url=place.url, application_name=_QUEUE)
        meter = Meter(lambda: place.server.cpu() + processes.cpu())
        meter.start()
        options: Any = {"workflow_name": run.__qualname__, "queue_name": _QUEUE, "app_version": _VERSION}
        handles: list[Any] = [client.enqueue(options, EACH) for _ in range(JOBS)]
        for handle in handles:
            assert handle.get_result(polling_interval_sec=0.01) == EACH
        meter.stop(JOBS * EACH)
        client.destroy()


def alone(workload: Callable[[Meter], None], place: Database) -> None:
    """Measure one process."""
    launched({"system_database_url": place.url}, workload, place.server.cpu)


def main(workload: Callable[[Database], None], _folder: Path) -> None:
    """Measure."""
    with database() as place:
        workload(place)


if __name__ == "__main__":
    asked(
        {name: partial(alone, workload) for name, workload in WORKLOADS.items()}
        | {f"workers-{count}": partial(workers, count) for count in range(1, MOST + 1)},
        main,
    )
