"""Jobs placed by DBOS on PostgreSQL. DBOS says where a pass runs and when; what happened is in the journal alone.

Each process hands to DBOS what is due: a constant workflow per pass, with the stream's name and epoch. DBOS gives it to
one of the processes on its queue, which leases the stream in the journal under a new epoch (rule 4) and goes as far as
it can. A stream that stays due is handed over again: nothing is lost or done twice if DBOS forgets a workflow, ends it
early or runs it twice. Only `dbos.ahead` of them wait in DBOS, however many jobs are due.

Processes that run the same recipes share a queue. What was left to one process in particular, it takes by itself, as
the local engine does. DBOS leaves the workflows of a dead executor where they are: each process resumes those of
executors of which the journal says no more that they work (presence.py).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, error
from sqlalchemy.exc import SQLAlchemyError

from remit.clock import SECOND
from remit.codes import Code
from remit.engines.local import LocalEngine
from remit.engines.presence import present
from remit.errors import JournalError, SettingsError
from remit.journal.leases import Owner
from remit.journal.postgres.server import Address
from remit.settings.sections.process import SERVERS, shards_in

if TYPE_CHECKING:
    from remit.engines.port import Work
    from remit.engines.settings import DbosSettings
    from remit.journal.event import StreamHead
    from remit.settings import Settings

_VERSION: Final = "remit-1"
"""Pinned: which code may run a job, the journal says. It changes if the meaning of a pass does."""
_WORKFLOW: Final = "remit_pass"
_MIDDLE: Final = 2**30
"""The priority in DBOS of a job with none; there a lower number comes first."""
_BATCH: Final = 64
"""Passes that a process hands over at a time: others hand over the rest."""
_SHOWN_S: Final = 3_600  # of a pass that is over
T = TypeVar("T")
_engines: dict[str, tuple[DbosEngine, asyncio.AbstractEventLoop]] = {}
"""The one that works in this process, and its loop: DBOS is one to a process, and has a loop of its own."""


@DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=None)
async def _run_pass(stream: str, epoch: int) -> None:
    for engine, loop in list(_engines.values()):
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(engine.placed(stream, epoch), loop))


class DbosEngine(LocalEngine):
    """Runs what DBOS gives to this process; with chosen streams (`only`), it is the local engine."""

    def __init__(self, work: Work, settings: Settings, dbos: DbosSettings) -> None:
        jobs, url = settings.jobs, settings.journal.url
        if url.partition("://")[0] not in SERVERS or len(shards_in(url)) > 1:
            reason = "jobs.engine is dbos, and the journal is not on one PostgreSQL server"
            raise SettingsError(reason, remedy="Give journal.url a postgresql:// address, or set jobs.engine to local.")
        super().__init__(work, concurrency=jobs.concurrency, lease_s=jobs.lease_seconds, settings=settings.written)
        self._dbos = dbos
        self._pause_s = dbos.poll_millis / 1_000
        served = sha256("\n".join(sorted(work.routes)).encode()).hexdigest()[:12]
        self._queue = f"remit-{work.kind}-{dbos.queue}-{served}"
        where = Address.parse(url)
        self._where: dict[str, Any] = {"system_database_url": where.dsn, "dbos_system_schema": f"{where.schema}_dbos"}
        self._executor: DBOS | None = None

    # --- life

    def start(self, *, only: AbstractSet[str] | None = None, keep: bool = False, role: str = "") -> None:
        super().start(only=only, keep=keep, role=role or ("" if only is not None else "worker"))

    async def drain(self, seconds: float) -> bool:
        self.holding.halt()
        for event in self._executor.background_thread_stop_events if self._executor is not None else ():
            event.set()  # it takes nothing more from its queue
        return await super().drain(seconds)

    async def stop(self) -> None:
        await super().stop()
        await asyncio.to_thread(self._leave)

    async def _claim(self) -> None:
        if self.claiming.only is not None:
            await super()._claim()
            return
        client = await self._ask(self._join, asyncio.get_running_loop())
        try:
            while not self.holding.stopping:
                self._poked.clear()
                if self.claiming.look_for_dead:
                    self.claiming.look_for_dead = False
                    working = {each.started.owner for each in await present(self._work.journal)}
                    await self._ask(self._resume, client, working | {self.owner})
                due = await self._hand_over(client)
                await self._clock.sleep(self._pause_s)
                if not due:
                    await self._rest()
        finally:
            client.destroy()

    # --- what is due

    async def _hand_over(self, client: DBOSClient) -> bool:
        """Give to DBOS what is due, and take what was left to this process; whether anything was due."""
        heads = await self.claiming.waiting(self._dbos.ahead, await self.holding.renew_overdue())
        public = {"", *self._work.routes}
        await self._ask(self._enqueue, client, [head for head in heads if head.route in public])
        for head in heads:
            if head.route not in public and self._free:
                await self._lease(head, head.epoch)
        return bool(heads)

    async def placed(self, stream: str, epoch: int) -> None:
        """Make the pass that DBOS gave to this process, until it ends."""
        head = await self._work.journal.head(stream)
        if head is not None and await self._lease(head, epoch):
            await self.holding.finished(stream)

    async def _lease(self, head: StreamHead, epoch: int) -> bool:
        """Begin a pass, unless someone has had the stream since `epoch` and lives; the next pass has another epoch."""
        owner, now = head.lease_owner or "", await self.holding.renew_overdue()
        holder = Owner.parse(owner)
        dead = owner if holder is not None and holder.dead() else None
        if head.epoch != epoch and dead is None:
            return False
        lease = await self._work.journal.acquire(head.stream, self.holding.terms(1, now), over=dead)
        if lease is not None:
            await self.holding.begin(lease)
        return lease is not None

    # --- DBOS, which blocks: on a thread

    async def _ask(self, ask: Callable[..., T], *args: Any) -> T:
        """Raise JournalError if DBOS fails: its tables are in the journal's database."""
        try:
            return await asyncio.to_thread(ask, *args)
        except (error.DBOSException, SQLAlchemyError) as failure:
            reason = f"DBOS cannot place jobs: {type(failure).__name__}"
            raise JournalError(reason, remedy="Look at the journal's database, where it has a schema.") from failure

    def _join(self, loop: asyncio.AbstractEventLoop) -> DBOSClient:
        if _engines:
            reason = "DBOS already places the jobs of this process"
            raise JournalError(reason, code=Code.JOURNAL_LOCKED, remedy="Open one Remit in each process.")
        _engines[self.owner] = self, loop
        own: Any = {"name": "remit", "executor_id": self.owner, "application_version": _VERSION, "sys_db_pool_size": 4}
        shared: Any = {**self._where, "serializer": DBOSPortableJSONSerializer()}
        self._executor = DBOS(config=shared | own | {"log_level": "ERROR"})
        self._executor.listen_queues([self._queue])
        self._executor.launch()
        limits, most = self._dbos, self._dbos.concurrency or None
        DBOS.register_queue(
            self._queue,
            worker_concurrency=min(self._concurrency, most or self._concurrency),
            global_concurrency=most,
            limiter={"limit": limits.rate, "period": float(limits.rate_seconds)} if limits.rate else None,
            polling_interval_sec=self._pause_s,
            on_conflict="always_update",
        )
        shared |= {"application_name": "remit", "system_database_pool_size": 2}
        return DBOSClient(**shared, retry_connection_errors=False)

    def _enqueue(self, client: DBOSClient, heads: list[StreamHead]) -> None:
        """Hand over what does not wait in DBOS yet: a part of it, for others hand over the same streams."""
        if heads:
            queued = client.list_queued_workflows(queue_name=self._queue, load_input=False)
            there = {status.deduplication_id for status in queued}
            missing = [head for head in heads if f"{head.stream}@{head.epoch}" not in there]
            for head in sorted(random.sample(missing, min(_BATCH, len(missing))), key=missing.index):
                options: Any = {"workflow_name": _WORKFLOW, "queue_name": self._queue, "app_version": _VERSION}
                options |= {"deduplication_id": f"{head.stream}@{head.epoch}", "duplication_policy": "return-existing"}
                options["priority"] = _MIDDLE - max(1 - _MIDDLE, min(head.priority, _MIDDLE - 1))
                client.enqueue(options, head.stream, head.epoch)

    def _resume(self, client: DBOSClient, working: set[str]) -> None:
        """Resume the workflows of executors that work no more, and remove those that were over long ago."""
        options: Any = {"queue_name": self._queue, "load_input": False, "load_output": False}
        pending = client.list_workflows(status="PENDING", **options)
        if lost := [status.workflow_id for status in pending if status.executor_id not in working]:
            client.resume_workflows(lost, queue_name=self._queue)
        before = datetime.fromtimestamp(self._clock.now() / SECOND - _SHOWN_S, UTC).isoformat()
        over = client.list_workflows(status=["SUCCESS", "ERROR"], completed_before=before, limit=1_000, **options)
        if over:
            client.delete_workflows([status.workflow_id for status in over])

    def _leave(self) -> None:
        if _engines.pop(self.owner, None) is not None:
            DBOS.destroy()
