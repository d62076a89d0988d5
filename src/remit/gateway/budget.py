"""The use of models, summed over events: an answer that did not arrive counts as what was reserved for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from remit.journal.event import Event
from remit.journal.kinds import CommandCommitted, CommandStarted, JobForked, decode


class Reservation(Protocol):
    """The part reserved for an answer."""

    @property
    def reserved_tokens(self) -> int:
        """The most tokens that it may take."""
        ...

    @property
    def reserved_cost(self) -> float:
        """The same in US dollars; 0: no price is known."""
        ...


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a job may spend on models; None: no limit."""

    tokens: int | None = None
    cost: float | None = None
    """US dollars."""
    calls: int | None = None


class Spent(msgspec.Struct, array_like=True):
    """A sum that grows with every event, and holds what is reserved for answers still under way."""

    tokens: int = 0
    cost: float = 0.0
    """US dollars, as far as prices are known."""
    calls: int = 0
    unpriced: int = 0
    """Calls of which no price is known."""

    def reserve(self, tokens: int, cost: float) -> None:
        """Count a call that begins."""
        self.tokens += tokens
        self.cost += cost
        self.calls += 1
        self.unpriced += not cost

    def release(self, tokens: int, cost: float) -> None:
        """Take back what was reserved for a call that was not announced."""
        self.tokens -= tokens
        self.cost -= cost
        self.calls -= 1
        self.unpriced -= not cost

    def settle(self, reserved: Reservation, committed: CommandCommitted) -> None:
        """Put what the call took in the place of what was reserved for it."""
        if not committed.uncertain:
            self.tokens += committed.token_count - reserved.reserved_tokens
            self.cost += (committed.cost or 0.0) - reserved.reserved_cost
            self.unpriced += (committed.cost is None and committed.token_count > 0) - (not reserved.reserved_cost)

    def add(self, other: Spent) -> None:
        """Add another sum."""
        self.tokens += other.tokens
        self.cost += other.cost
        self.calls += other.calls
        self.unpriced += other.unpriced


def own(events: Iterable[Event]) -> Iterator[Event]:
    """A stream's events from the first on, without those that a retry took over: the job that made them counts them."""
    until = 0
    for event in events:
        if event.kind == JobForked.KIND:
            forked = decode(event.kind, event.data)
            until = event.seq + forked.taken if isinstance(forked, JobForked) else 0
        elif event.seq > until:
            yield event


class Spending:
    """Folds the events of one stream."""

    def __init__(self) -> None:
        self.spent = Spent()
        self._open: dict[str, CommandStarted] = {}

    def started(self, event: CommandStarted) -> None:
        """A model is asked."""
        self.spent.reserve(event.reserved_tokens, event.reserved_cost)
        self._open[event.invocation_id] = event

    def committed(self, event: CommandCommitted) -> None:
        """The attempt has ended."""
        started = self._open.pop(event.invocation_id, None)
        if started is not None:
            self.spent.settle(started, event)
