"""The local engine: workers as tasks of this process, jobs shared with other processes through the journal alone.

One loop claims what is due, up to the bound; between claims it sleeps until the journal changes, a timer is due or a
slot is free. Fairness comes from the queue: higher priority first, then the longest due; who parks goes to the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.engines.owner import Owner
from remit.errors import JournalError
from remit.jobs.state import KIND, stream_of
from remit.journal.event import Claim, Lease

if TYPE_CHECKING:
    from remit.jobs.ended import Ended
    from remit.jobs.runner import Pass, Runner

_log: Final = logging.getLogger("remit.engine")
_SPACING_S: Final = 0.005
"""At most so often the journal is asked for work."""
_NEWS_S: Final = 0.05
"""At most so often running jobs are told of messages; one that waits is woken at once."""
_BATCH: Final = 64
"""Jobs claimed in one transaction."""
_PRUNE_S: Final = 3_600
"""So often blobs are erased whose time is over."""


class LocalEngine:
    """Runs due jobs of one journal, several at once."""

    def __init__(self, runner: Runner, *, concurrency: int, lease_s: float) -> None:
        """`concurrency` jobs at once; leases last `lease_s` seconds and are renewed at a third of that."""
        self._runner = runner
        self._journal = runner.journal
        self._concurrency = concurrency
        self._lease_s = lease_s
        self.owner = str(Owner.this())
        self._passes: dict[str, tuple[Pass, asyncio.Task[None]]] = {}
        self._held_until = 0
        """By then every lease of these passes has to be renewed."""
        self._ended: dict[str, list[asyncio.Future[Ended]]] = {}
        self._poke = asyncio.Event()
        self._news = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._helpers: list[asyncio.Task[None]] = []
        self._stopping = False
        self._look_for_dead = True
        self._dead: list[tuple[str, str]] = []
        """Jobs of processes that died, with those owners, to be taken over as slots are free."""
        self._only: set[str] | None = None
        self.failure: JournalError | None = None
        """Why the engine stopped by itself; jobs go on elsewhere, or here once the journal works again."""

    # --- life

    def start(self, *, only: set[str] | None = None) -> None:
        """Begin to work; with `only`, on these jobs and no others."""
        self._only = only
        if self._working is None:
            self._working = asyncio.create_task(self._until_it_fails(self._work), name="remit:engine")
            self._helpers = [
                asyncio.create_task(self._until_it_fails(self._watch), name="remit:watch"),
                asyncio.create_task(self._until_it_fails(self._tell), name="remit:news"),
                asyncio.create_task(self._until_it_fails(self._renew), name="remit:leases"),
                asyncio.create_task(self._until_it_fails(self._prune), name="remit:prune"),
            ]

    def poke(self) -> None:
        """There may be work."""
        self._poke.set()

    async def drain(self, seconds: float) -> bool:
        """Claim no more, begin no new effects, and let calls under way end, for so long; whether all did."""
        self._halt()
        await self._stop_claiming()
        self._halt()  # what the last claim brought
        running = [task for _, task in self._passes.values()]
        if running:
            await asyncio.wait(running, timeout=seconds)
        return not self._passes

    async def stop(self) -> None:
        """Stop everything at once. Jobs under way keep what is recorded; their leases are given up."""
        await self._stop_claiming()
        ending = [*self._helpers, *(task for _, task in self._passes.values())]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        self._helpers.clear()

    def _halt(self) -> None:
        for one, _ in self._passes.values():
            one.halt()

    async def _stop_claiming(self) -> None:
        """End the claiming loop between two claims: cancelled within one, it would hold leases it knows nothing of."""
        self._stopping = True
        self._poke.set()
        if self._working is not None:
            await asyncio.wait([self._working])

    @property
    def running(self) -> list[str]:
        """Jobs under way."""
        return list(self._passes)

    def ended(self, job: str) -> asyncio.Future[Ended]:
        """A future for the next time this engine's pass over a job comes to its end."""
        stream = stream_of(job)
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._ended.setdefault(stream, []).append(future)
        future.add_done_callback(lambda future: self._forget(stream, future))
        return future

    def _forget(self, stream: str, future: asyncio.Future[Ended]) -> None:
        """It has come, or nobody waits for it any more."""
        waiting = self._ended.get(stream, [])
        if future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._ended[stream]

    # --- claiming

    async def _work(self) -> None:
        while not self._stopping:
            self._poke.clear()
            if self._passes and self._journal.clock.now() >= self._held_until:
                await self._keep()  # the clock jumped, or nothing ran here for long: our own jobs are no others' yet
            free = self._concurrency - len(self._passes)
            leases = await self._rescued(free)
            if free > len(leases):
                leases += await self._claim(min(free - len(leases), _BATCH))
            for lease in leases:
                await self._begin(lease)
            if len(leases) < _BATCH or not self._free:
                await self._rest()

    @property
    def _free(self) -> bool:
        return len(self._passes) < self._concurrency

    async def _claim(self, limit: int) -> list[Lease]:
        claim = self._terms(limit)
        if self._only is None:
            return await self._journal.claim(claim)
        found: list[Lease] = []
        for job in sorted(self._only):
            if len(found) == limit:
                break
            stream = stream_of(job)
            head = await self._journal.head(stream)
            if stream in self._passes or head is None or head.due_at is None or head.due_at > claim.now:
                continue
            lease = await self._journal.acquire(stream, claim)
            if lease is not None:
                found.append(lease)
        return found

    def _terms(self, limit: int = 1) -> Claim:
        now = self._journal.clock.now()
        until = now + int(self._lease_s * SECOND)
        return Claim(kind=KIND, owner=self.owner, now=now, lease_until=until, limit=limit, state="running")

    async def _rest(self) -> None:
        """Until there may be work: a poke, or the next due time."""
        due = await self._next_due() if self._free else None
        timer: asyncio.Task[None] | None = None
        if due is not None:
            timer = asyncio.create_task(self._ring(due))
        try:
            await self._poke.wait()
        finally:
            if timer is not None:
                timer.cancel()
                await asyncio.wait([timer])

    async def _next_due(self) -> int | None:
        if self._only is None:
            return await self._journal.next_due(KIND)
        heads = [await self._journal.head(stream_of(job)) for job in self._only]
        return min((head.due_at for head in heads if head is not None and head.due_at is not None), default=None)

    async def _ring(self, due: int) -> None:
        wait = (due - self._journal.clock.now()) / SECOND
        await self._journal.clock.sleep(max(wait, _SPACING_S))
        self._poke.set()

    async def _rescued(self, limit: int) -> list[Lease]:
        """Take over at once what processes of this machine held when they died, as many as there is room for."""
        if self._look_for_dead:
            self._look_for_dead = False
            self._dead = await self._left_by_the_dead()
        found: list[Lease] = []
        while self._dead and len(found) < limit:
            stream, owner = self._dead.pop()
            head = await self._journal.head(stream)
            if head is None or head.lease_owner != owner:
                continue  # somebody else was quicker
            lease = await self._journal.acquire(stream, self._terms(), over=owner)
            if lease is not None:
                _log.info("%s: taken over from a process that died", stream)
                found.append(lease)
        return found

    async def _left_by_the_dead(self) -> list[tuple[str, str]]:
        wanted = None if self._only is None else {stream_of(job) for job in self._only}
        found = []
        for head in await self._journal.leases(KIND):
            owner = head.lease_owner or ""
            holder = Owner.parse(owner)
            if holder is None or head.stream in self._passes or not holder.dead():
                continue
            if wanted is None or head.stream in wanted:
                found.append((head.stream, owner))
        found.reverse()  # they are taken from the end
        return found

    # --- passes

    async def _begin(self, lease: Lease) -> None:
        one = self._runner.take(lease)
        if self._stopping:
            await one.give_up()
            return
        before = self._passes.get(one.stream)
        if before is not None:
            _end(*before)  # somebody had the job meanwhile, and what this pass still says is not heard
        until = lease.head.lease_until or 0
        self._held_until = min(until, self._held_until) if self._passes else until
        running = self._run(one, before[1] if before else None)
        self._passes[one.stream] = one, asyncio.create_task(running, name=f"remit:pass:{one.job}")
        self._news.set()  # who woke it since it was leased was heard while nobody here knew of the pass

    async def _run(self, one: Pass, before: asyncio.Task[None] | None) -> None:
        """Run a pass, once the one before it over the same job has ended."""
        try:
            if before is not None:
                await asyncio.wait([before])
            self._over(one.stream, await one.run())
        except asyncio.CancelledError:
            if self._stopping:
                await one.give_up()
            raise
        except JournalError as error:
            self._fail(error)
        except Exception:  # noqa: BLE001 - a defect of ours must not take the other jobs with it
            # The lease lapses, and the job is tried again then rather than in a loop.
            _log.exception("%s: the pass failed", one.job)
        finally:
            if before is not None and not before.done():
                await asyncio.wait([before])  # cancelled while it waited: whoever stops the engine waits for both
            if one.stream in self._passes and self._passes[one.stream][0] is one:
                del self._passes[one.stream]
            self._poke.set()

    def _over(self, stream: str, ended: Ended) -> None:
        """Tell who waits for it how a pass came to its end."""
        for future in self._ended.pop(stream, ()):
            if not future.done():
                future.set_result(ended)

    # --- watching

    async def _watch(self) -> None:
        """Pass on every change of heads: there may be work, or news for a running job."""
        mark = 0
        while True:
            mark = await self._journal.heads_changed(mark)
            await self._journal.clock.sleep(_SPACING_S)
            if self._free:
                self._poke.set()
            self._news.set()

    async def _tell(self) -> None:
        """Tell running jobs how often they were woken; a change that comes while this rests is told of after it."""
        while True:
            await self._news.wait()
            self._news.clear()
            wakes = await self._journal.wakes(tuple(self._passes)) if self._passes else {}
            for stream, count in wakes.items():
                if stream in self._passes:
                    self._passes[stream][0].news(count)
            await self._journal.clock.sleep(_NEWS_S)

    async def _renew(self) -> None:
        while True:
            await self._journal.clock.sleep(self._lease_s / 3)
            await self._keep()
            self._look_for_dead = True
            self._poke.set()

    async def _keep(self) -> None:
        """Renew the leases of what runs here, and end what somebody else has taken over."""
        held = dict(self._passes)
        until = self._terms().lease_until
        leases = [(stream, one.epoch) for stream, (one, _) in held.items()]
        kept = set(await self._journal.renew(leases, until)) if held else set()
        self._held_until = until
        for stream, running in held.items():
            if stream not in kept:
                _end(*running)

    async def _prune(self) -> None:
        """Whoever works on jobs also erases what was to be kept until now."""
        while True:
            await self._journal.prune()
            await self._journal.clock.sleep(_PRUNE_S)

    async def _until_it_fails(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except JournalError as error:
            self._fail(error)

    def _fail(self, error: JournalError) -> None:
        if self.failure is None:
            self.failure = error
            _log.error("the engine stops: %s", error)
        for futures in self._ended.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # who waits may hear of it from the journal first
        self._ended.clear()
        self._stopping = True
        self._poke.set()


def _end(one: Pass, task: asyncio.Task[None]) -> None:
    """End a pass whose job is another's."""
    one.writer.supersede()
    task.cancel()
