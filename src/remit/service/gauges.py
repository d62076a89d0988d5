"""The work that there is in a journal, as metrics: queues, leases and questions that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.jobs.state import KIND as JOB
from remit.journal.event import Head
from remit.metrics.metric import Sample
from remit.metrics.registry import Family

if TYPE_CHECKING:
    from remit.journal.journal import Journal


async def gauges(journal: Journal, queues: tuple[str, ...]) -> list[Family]:
    """The gauges of a journal, by name, of jobs and of `queues`: other kinds that workers lease.

    Their labels are kinds and states, which are few and ours.
    """
    depths, held = list[Sample](), list[Sample]()
    for kind in (JOB, *queues):
        counts = await journal.counts(kind)
        depths += [Sample("", (("kind", kind), ("state", state)), counts[state]) for state in sorted(counts)]
        leases = await journal.leases(kind)
        running = sum(_runs(head, journal.clock.now()) for head in leases)
        held += [
            Sample("", (("kind", kind), ("lease", "held")), running),
            Sample("", (("kind", kind), ("lease", "lapsed")), len(leases) - running),
        ]
    waiting = (await journal.counts(CONFIRMATION)).get("pending", 0)
    return [
        Family("confirmations_waiting", "gauge", "Questions that wait for a person.", (Sample("", (), waiting),)),
        Family("leases", "gauge", "Jobs and tickets that a worker holds, or held until it died.", tuple(held)),
        Family("queue_depth", "gauge", "Jobs and tickets by their state.", tuple(depths)),
    ]


def _runs(head: Head, now: int) -> bool:
    return head.lease_until is not None and head.lease_until > now
