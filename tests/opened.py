"""A Remit opened for a test, and waiting for things rather than for time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from remit import Remit
from remit.engines.local import LocalEngine
from remit.record.views import JobRow


class OpenRemit(Protocol):
    """Makes a Remit over the test's own journal."""

    def __call__(self, **given: Any) -> Remit:
        """`flags` are settings; everything else is Remit's own."""
        ...


def local_engine(remit: Remit) -> LocalEngine:
    """Its engine, with its two halves."""
    engine = remit.runtime.engine
    assert isinstance(engine, LocalEngine)
    return engine


async def until(remit: Remit, job: str, reached: Callable[[JobRow], bool]) -> JobRow:
    """Wait until a job's row satisfies a condition."""
    mark = 0
    while True:
        mark = await remit.runtime.journal.changed(mark)
        row = await remit.service.jobs.row(job)
        if reached(row):
            return row


async def until_waiting(remit: Remit, job: str) -> JobRow:
    """Wait until a job is parked."""
    return await until(remit, job, lambda row: row.state == "waiting")


async def until_left(remit: Remit, job: str) -> JobRow:
    """Wait until a worker has left a job to others: it waits, and its code says why.

    Where it is resumed after a worker looked at it, it runs once more, with the code of the first time.
    """
    return await until(remit, job, lambda row: row.state == "waiting" and bool(row.code))
