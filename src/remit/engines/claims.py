"""Streams that this process holds: their passes, their leases, and the news that reaches them.

Nothing here looks for work. The process that has leased a stream hands the lease to `begin`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError
from remit.gateway.call import LogContext, log_context
from remit.journal.leases import LeaseTerms, Owner, keep_renewing, renew_all

if TYPE_CHECKING:
    from remit.engines.port import StreamExecution, Work
    from remit.jobs.end import PassEnd
    from remit.journal.event import Lease, LeaseClaim

_log: Final = logging.getLogger("remit.engine")
_SPACING_S: Final = 0.005
"""Changes of the journal are looked at this often at most."""
_NEWS_S: Final = 0.05
"""Running passes hear of messages this often at most; one that waits is woken at once."""
_AGAIN_S: Final = 1.0
"""The time after which a part of the engine goes on that met a shard of the journal that is down."""
_CLOCK: Final = SystemClock()
_PRUNE_S: Final = 3_600
"""The interval at which blobs are erased whose time is over."""


class Holding:
    """Runs a pass for each lease, renews the leases, and tells passes when they were woken.

    Leases last `lease_s` seconds and are renewed at a third of that. `changed` is called when a pass ended, when heads
    changed, and when it all stops.
    """

    def __init__(self, work: Work, *, lease_s: float, changed: Callable[[], None]) -> None:
        self.owner = str(Owner.this())
        self.keeper = ""
        """This owner, if the streams are kept for its process while they wait."""
        self.stopping = False
        self.failure: JournalError | None = None
        self._work = work
        self._journal = work.journal
        self._terms = LeaseTerms(kind=work.kind, owner=self.owner, seconds=lease_s, state="running")
        self._changed = changed
        self._passes: dict[str, tuple[StreamExecution, asyncio.Task[None]]] = {}
        self._held_until = 0
        """Every lease of these passes has to be renewed by then."""
        self._ended: dict[str, list[asyncio.Future[PassEnd]]] = {}
        self._news = asyncio.Event()
        self._helpers: list[asyncio.Task[None]] = []

    # --- life

    def start(self) -> None:
        """Begin to renew leases and to pass on news."""
        if not self._helpers:
            for name, work in (
                ("watch", self._watch),
                ("news", self._tell),
                ("leases", self._renew),
                ("prune", self._prune),
            ):
                self._helpers.append(self.task(name, work))

    def task(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run a part of the engine; if the journal fails it, the whole engine stops."""
        return asyncio.create_task(self._until_it_fails(work), name=f"remit:{name}")

    def halt(self) -> None:
        """Let passes begin nothing new, and begin no more passes."""
        self.stopping = True
        for work, _ in self._passes.values():
            work.halt()

    async def wait(self, seconds: float) -> bool:
        """Wait so long for the passes under way; whether all have ended."""
        running = [task for _, task in self._passes.values()]
        if running:
            await asyncio.wait(running, timeout=seconds)
        return not self._passes

    async def stop(self) -> None:
        """End every pass at once; their leases are given up."""
        self.stopping = True
        ending = [*self._helpers, *(task for _, task in self._passes.values())]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        self._helpers.clear()

    @property
    def running(self) -> list[str]:
        return list(self._passes)

    def __contains__(self, stream: str) -> bool:
        return stream in self._passes

    def __len__(self) -> int:
        return len(self._passes)

    # --- leases and passes

    def terms(self, limit: int = 1, now: int | None = None) -> LeaseClaim:
        """Return what a lease of this process says; `now` is the clock's time unless it is given."""
        return self._terms.claim(self._journal.clock.now() if now is None else now, limit=limit)

    async def begin(self, lease: Lease) -> None:
        """Run a pass over a stream that was just leased."""
        work = self._work.take(lease, self.keeper)
        if self.stopping:
            await work.give_up()
            return
        stream = work.lease.stream
        before = self._passes.get(stream)
        if before is not None:
            _end(*before)  # another worker had the stream meanwhile: what this pass still says is refused
        until = lease.head.lease_until or 0
        self._held_until = min(until, self._held_until) if self._passes else until
        running = self._run(work, before[1] if before else None)
        self._passes[stream] = work, asyncio.create_task(running, name=f"remit:pass:{stream}")
        self._news.set()  # it may have been woken between the lease and now

    async def renew_overdue(self) -> int:
        """Renew now if the clock jumped, or nothing ran here for long: before a claim takes our own streams from us.

        Return the time to claim at: the clock may jump again before the claim, and at this time the leases hold.
        """
        now = self._journal.clock.now()
        if self._passes and now >= self._held_until:
            await self._keep()
        return now

    async def _run(self, execution: StreamExecution, before: asyncio.Task[None] | None) -> None:
        """Run a pass, once the one before it over the same stream has ended."""
        stream = execution.lease.stream
        place = LogContext(stream)
        log_context.set(place)
        try:
            if before is not None:
                await asyncio.wait([before])
            _log.info("%s: begun", stream)
            self._over(stream, await execution.run())
        except asyncio.CancelledError:
            if self.stopping:
                await execution.give_up()
            raise
        except JournalError as error:
            if error.code is not Code.JOURNAL_SHARD_UNAVAILABLE:
                self.fail(error)
            else:  # the lease lapses, and the stream goes on once its shard is there
                _log.warning("%s: left alone: %s", stream, error.message)
        except Exception:  # noqa: BLE001 - a defect of ours must not take the other streams with it
            # The lease lapses, and the stream is tried again then rather than in a loop.
            _log.exception("%s: the pass failed", stream)
        finally:
            place.open = False
            if before is not None and not before.done():
                await asyncio.wait([before])  # cancelled while it waited: stopping waits for both
            if stream in self._passes and self._passes[stream][0] is execution:
                del self._passes[stream]
            self._changed()

    # --- those who wait for a pass

    async def finished(self, stream: str) -> None:
        """Wait until the pass over a stream has ended, in whatever way; return at once if there is no pass."""
        if stream in self._passes:
            await asyncio.wait([self._passes[stream][1]])

    def ended(self, stream: str) -> asyncio.Future[PassEnd]:
        """A future for the next time a pass over a stream ends; it raises `failure` if the engine fails first."""
        future: asyncio.Future[PassEnd] = asyncio.get_running_loop().create_future()
        self._ended.setdefault(stream, []).append(future)
        future.add_done_callback(lambda future: self._forget(stream, future))
        return future

    def _forget(self, stream: str, future: asyncio.Future[PassEnd]) -> None:
        waiting = self._ended.get(stream, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._ended[stream]

    def _over(self, stream: str, ended: PassEnd) -> None:
        _log.info("%s: %s%s", stream, ended.how, f": {ended.error.code}" if ended.error else "")
        for future in self._ended.pop(stream, ()):
            if not future.done():
                future.set_result(ended)

    # --- helpers

    async def _watch(self) -> None:
        """Pass on every change of heads: there may be work, or news for a running pass."""
        mark = 0
        while True:
            mark = await self._journal.heads_changed(mark)
            await self._journal.clock.sleep(_SPACING_S)
            self._changed()
            self._news.set()

    async def _tell(self) -> None:
        """Tell passes how often they were woken; a change that comes during the pause is told after it."""
        while True:
            await self._news.wait()
            self._news.clear()
            wakes = await self._journal.wakes(tuple(self._passes)) if self._passes else {}
            for stream, count in wakes.items():
                if stream in self._passes:
                    self._passes[stream][0].news(count)
            await self._journal.clock.sleep(_NEWS_S)

    async def _renew(self) -> None:
        await keep_renewing(self._journal.clock, self._terms.seconds, self._keep)

    async def _keep(self) -> bool:
        """Renew the leases of what runs here, and end what another worker has taken over; there will be more."""
        held = dict(self._passes)
        until = self._terms.until(self._journal.clock.now())
        lost = await renew_all(self._journal, [held_work.lease for held_work, _ in held.values()], until)
        self._held_until = until
        for lease in lost:
            held[lease.stream][1].cancel()
        return True

    async def _prune(self) -> None:
        """Erase what was to be kept until now: every process that works does it."""
        while True:
            await self._journal.prune()
            await self._journal.clock.sleep(_PRUNE_S)

    # --- failure

    async def _until_it_fails(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await work()
            except JournalError as error:
                if error.code is not Code.JOURNAL_SHARD_UNAVAILABLE:
                    return self.fail(error)
            await _CLOCK.sleep(_AGAIN_S)

    def fail(self, error: JournalError) -> None:
        """Stop, because the journal failed; `ended` raises the error."""
        if self.failure is None:
            self.failure = error
            _log.error("the engine stops: %s", error)
        for futures in self._ended.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # the caller may hear of it from the journal first
        self._ended.clear()
        self.stopping = True
        self._changed()


def _end(execution: StreamExecution, task: asyncio.Task[None]) -> None:
    """End a pass whose stream another worker has."""
    execution.lease.writer.supersede()
    task.cancel()
