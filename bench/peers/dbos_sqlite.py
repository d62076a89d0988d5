"""DBOS on SQLite, in WAL mode and with few threads, which is faster than its defaults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy

from bench.peers.dbos_run import WORKLOADS, launched
from bench.peers.program import Meter, asked


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def _use_wal(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")


def main(workload: Callable[[Meter], None], folder: Path) -> None:
    """Measure."""
    launched({"system_database_url": f"sqlite:///{folder}/dbos.db", "max_executor_threads": 4}, workload)


if __name__ == "__main__":
    asked(WORKLOADS, main)
