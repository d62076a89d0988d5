"""Whether this process can take work, and what it has counted."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import JournalError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.gateway.readiness import DependencyState
from remit.jobs.state import KIND as JOB
from remit.journal.event import StreamHead
from remit.metrics import MAX_SERIES, MetricFamily, MetricSample
from remit.redact import line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from remit.gateway.model_request import Allowance
    from remit.gateway.readiness import ReadinessSnapshot
    from remit.gateway.services import Services
    from remit.gateway.turnstiles import Turnstiles
    from remit.journal.journal import Journal
    from remit.service.policy import PotView


_GAUGES_S: Final = 2.0
"""Programs that collect metrics wait for some seconds."""
_log: Final = logging.getLogger("remit.service")


class Health:
    """The state of one process.

    `queues` are the kinds of streams beside jobs that workers lease. Of more than `queue_bytes` that wait to be
    written, the process is full. `pots` looks how full those are.
    """

    def __init__(
        self,
        services: Services,
        queues: tuple[str, ...],
        queue_bytes: int,
        pots: Callable[[], Awaitable[list[PotView]]],
    ) -> None:
        self._pots = pots
        self._queue_bytes = queue_bytes
        self._services = services
        self._queues = queues
        self._parts: dict[str, str] = {}
        """The reason why each part of this process does not work; empty: it does."""
        self.stopping: Callable[[], bool] = lambda: False
        """Tells whether this process was told to stop."""

    # --- queries

    async def reachable(self) -> None:
        """Return if the journal answers. Raises JournalError."""
        await self._services.journal.drained()

    async def ready(self) -> ReadinessSnapshot:
        """Every dependency now. Raise JournalError if the journal does not answer."""
        await self._services.journal.next_due("job")
        return await self._services.readiness.snapshot()

    def full(self) -> bool:
        """Return whether so much waits to be written that this process should begin nothing new."""
        return self._services.journal.backlog() > self._queue_bytes

    async def missing(self) -> ReadinessSnapshot | None:
        """Every dependency, if a required one is not ready; None if all are."""
        if not self._services.readiness.requires:
            return None
        snapshot = await self._services.readiness.snapshot()
        return snapshot if snapshot.missing_required else None

    def missing_shards(self) -> list[str]:
        """Return the shards of the journal that are down, whose streams are in no list now."""
        return self._services.journal.missing()

    async def reach(self) -> None:
        """Connect the required dependencies that are not ready."""
        await self._services.readiness.reach()

    def report(self, part: str, reason: str = "") -> None:
        """Have `ready` show a part of this process, and why it does not work."""
        new, self._parts[part] = part not in self._parts, reason
        if new:
            self._services.readiness.add(part, lambda: self._state(part))

    async def _state(self, part: str) -> DependencyState:
        reason = self._parts[part]
        return DependencyState(
            ready=not reason, code=Code.DEP_UNAVAILABLE.name if reason else None, detail=line(reason)
        )

    def counted(self) -> list[MetricFamily]:
        """Every counter, gauge and histogram of this process alone, by name."""
        return self._services.metrics.collect()

    async def metrics(self) -> list[MetricFamily]:
        """Every counter, gauge and histogram as it is now, by name.

        What the journal says is left out if it does not answer soon: the counters of this process say why.
        """
        families = self.counted()
        try:
            async with asyncio.timeout(0 if self.full() else _GAUGES_S):
                families += await gauges(self._services.journal, self._queues)
                families += await budget_gauges(self._services.allowance)
                families += await limit_gauges(self._services.turnstiles)
                families += pot_gauges(await self._pots())
        except (JournalError, TimeoutError) as error:
            _log.warning("the journal's gauges are left out: %s", str(error) or "it does not answer")
        return sorted(families, key=lambda family: family.name)


async def gauges(journal: Journal, queues: tuple[str, ...]) -> list[MetricFamily]:
    """The gauges of a journal, by name, of jobs and of `queues`: other kinds that workers lease.

    Their labels are kinds and states, which are few and ours.
    """
    depths, held, lags = list[MetricSample](), list[MetricSample](), list[MetricSample]()
    for kind in (JOB, *queues):
        counts = await journal.counts(kind)
        depths += [MetricSample("", (("kind", kind), ("state", state)), counts[state]) for state in sorted(counts)]
        due, now = await journal.next_due(kind, tuple(await journal.routes(kind))), journal.clock.now()
        lags.append(MetricSample("", (("kind", kind),), max(0, now - due) / SECOND if due is not None else 0.0))
        leases = await journal.leases(kind)
        running = sum(_runs(head, journal.clock.now()) for head in leases)
        held += [
            MetricSample("", (("kind", kind), ("lease", "held")), running),
            MetricSample("", (("kind", kind), ("lease", "lapsed")), len(leases) - running),
        ]
    waiting = (await journal.counts(CONFIRMATION)).get("pending", 0)
    return [
        MetricFamily(
            "confirmations_waiting", "gauge", "Questions that wait for a person.", (MetricSample("", (), waiting),)
        ),
        MetricFamily("leases", "gauge", "Jobs and tickets that a worker holds, or held until it died.", tuple(held)),
        MetricFamily("queue_lag_seconds", "gauge", "Seconds for which the longest waits that is due.", tuple(lags)),
        MetricFamily("queue_depth", "gauge", "Jobs and tickets by their state.", tuple(depths)),
    ]


async def budget_gauges(allowance: Allowance) -> list[MetricFamily]:
    """Return how full the budgets of models are; nothing if there are none."""
    if not allowance.budgets:
        return []
    samples = tuple(
        MetricSample("", (("budget", account.budget.name), ("share", account.share)), account.budget.percent(spent))
        for account, spent in (await allowance.standing())[:MAX_SERIES]
    )
    return [MetricFamily("model_budget_percent", "gauge", "Percent taken of budgets of models.", samples)]


async def limit_gauges(turnstiles: Turnstiles | None) -> list[MetricFamily]:
    """Return how full the limits of tools are that all callers share; nothing if there are none."""
    fills = await turnstiles.fills() if turnstiles else {}
    samples = tuple(
        MetricSample("", (("limit", pattern), ("bound", bound)), percent)
        for pattern, percents in fills.items()
        for bound, percent in percents.items()
    )[:MAX_SERIES]
    return (
        [MetricFamily("call_limit_percent", "gauge", "Percent taken of limits of calls.", samples)] if samples else []
    )


def pot_gauges(pots: Iterable[PotView]) -> list[MetricFamily]:
    """Return how full the pots of rules are; nothing of those that each job, principal or tool has for itself."""
    samples = []
    for pot in pots:
        if pot.taken:
            samples.append(MetricSample("", (("pot", pot.pot), ("bound", "sum")), _percent(pot.taken, pot.max)))
        if pot.calls is not None and pot.most_calls:
            percent = _percent(pot.calls, pot.most_calls)
            samples.append(MetricSample("", (("pot", pot.pot), ("bound", "calls")), percent))
    return [MetricFamily("pot_percent", "gauge", "Percent taken of pots of rules.", tuple(samples))] if samples else []


def _percent(taken: str | int, most: str | int) -> float:
    return 100 * float(taken) / float(most) if float(most) else 100.0


def _runs(head: StreamHead, now: int) -> bool:
    return head.lease_until is not None and head.lease_until > now
