"""Workers: which processes run jobs now, with which code."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from remit.engines.presence import present
from remit.errors import JournalError
from remit.jobs.state import KIND
from remit.journal.event import HeadQuery
from remit.journal.retirement import RETIRED, refusal, standing_of
from remit.operation import operation
from remit.record.states import worker_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.journal.journal import Journal

_log: Final = logging.getLogger("remit.engine")
_LOOKED_AT: Final = 1_000


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A process that runs jobs."""

    worker: str
    """The owner as it stands in leases and in `recovery_started`."""
    words: str
    """The process, for people."""
    role: str
    """The command that was started: `worker`, `serve`, `tickets` or, of a program that opened a Remit, `python`."""
    since: int
    """Microseconds since the Unix epoch."""
    remit: str
    """The version of Remit."""
    recipes: dict[str, str]
    """The recipes that it runs, with the execution version of each."""
    jobs: int
    """The number of jobs that it runs at the moment."""
    outdated: bool = False
    """True if its remit.toml says something else than when it began; known of processes of this machine."""


class DueView(msgspec.Struct, frozen=True, kw_only=True):
    """Something beside jobs that workers begin by the clock."""

    kind: str
    """The sort of it, such as `schedule`."""
    title: str
    due_at: int
    """Microseconds since the Unix epoch; a worker may be late."""


class WorkersNoun:
    """The processes that work on one journal. `queues` are the kinds of streams beside jobs that workers lease."""

    def __init__(self, journal: Journal, queues: tuple[str, ...]) -> None:
        self._journal = journal
        self._queues = queues

    # --- queries

    async def refusal(self) -> JournalError | None:
        """Return why no process runs jobs of this journal: it moved, or is a copy. None: processes may."""
        standing = await standing_of(self._journal)
        if standing.state not in RETIRED:
            return None
        return refusal(self._journal.url, standing.state, standing.place)

    async def rested(self, tell: Callable[[str], object], pause_s: float) -> bool:
        """Wait while the journal runs no jobs; whether that was so. The log is told once, and `tell` at each look."""
        rested = False
        while True:
            try:
                reason = await self.refusal()
            except JournalError:  # which stops the work as well
                return rested
            if reason is None:
                return rested
            if not rested:
                _log.warning("nothing is run here: %s", reason)
            tell(str(reason))
            rested = True
            await self._journal.clock.sleep(pause_s)

    async def due(self, limit: int) -> list[DueView]:
        """List what workers begin next by the clock, beside jobs; of each kind the newest 1,000 are looked at."""
        views = list[DueView]()
        for kind in self._queues:
            heads = await self._journal.heads(HeadQuery(kind=kind, states=("pending",), limit=_LOOKED_AT))
            views += [
                DueView(kind=kind, title=head.title, due_at=head.due_at) for head in heads if head.due_at is not None
            ]
        return sorted(views, key=lambda view: view.due_at)[:limit]

    @operation("workers.page", "GET /v1/workers", "read", "List the processes that run jobs, with their code.")
    async def views(self) -> list[WorkerView]:
        """List the processes that run jobs now, the one that began last first."""
        held = Counter(head.lease_owner for head in await self._journal.leases(KIND))
        workers = [
            WorkerView(
                worker=worker.started.owner,
                words=worker_words(worker.started.owner),
                role=worker.started.role,
                since=worker.since,
                remit=worker.started.remit,
                recipes={name: versions[0] for name, versions in worker.started.recipes.items() if versions},
                jobs=held[worker.started.owner],
                outdated=worker.outdated(),
            )
            for worker in await present(self._journal)
        ]
        return sorted(workers, key=lambda worker: worker.since, reverse=True)
