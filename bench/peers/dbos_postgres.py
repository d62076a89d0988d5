"""DBOS on PostgreSQL, with the server beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.peers.dbos_run import WORKLOADS, launched
from bench.peers.postgres import database
from bench.peers.program import Meter, asked


def main(workload: Callable[[Meter], None], _folder: Path) -> None:
    """Measure."""
    with database() as found:
        launched({"system_database_url": found.url}, workload, found.server.cpu)


if __name__ == "__main__":
    asked(WORKLOADS, main)
