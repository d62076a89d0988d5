"""Counts where steps still stand: the older place goes away on a date (contract: tickets, "Ticket").

A TOOL ticket is counted as it is leased: a runner reads its steps then, in this process or behind a server.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from remit.tickets.steps import found_in

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.metrics.registry import Registry
    from remit.tickets.ticket import Ticket

_MILLI: Final = 1_000
_log: Final = logging.getLogger("remit.tickets")


class Cutover:
    """Counts the places of steps."""

    def __init__(self, metrics: Registry, clock: Clock, cutover_until_ms: int | None) -> None:
        """From `cutover_until_ms` (since the Unix epoch) on, a read of the older place is a violation."""
        self._clock = clock
        self._until_ms = cutover_until_ms
        self._missing = metrics.counter("canonical_missing", "Tickets whose tool_input holds no tool_steps.")
        self._legacy = metrics.counter("legacy_read", "Tickets whose steps were read from the older place.")
        self._violation = metrics.counter("cutover_violation", "Reads of the older place after CUTOVER_UNTIL_MS.")

    def leased(self, ticket: Ticket) -> None:
        """Count a ticket, if it has steps to read."""
        if ticket.type != "TOOL":
            return
        found = found_in(ticket.metadata.tool_input, ticket.tool_steps)
        if found.canonical_missing:
            self._missing.add()
        if found.legacy:
            self._legacy.add()
            if self._until_ms is not None and self._clock.now() >= self._until_ms * _MILLI:
                self._violation.add()
                _log.warning("%s: its steps are in the older place, after CUTOVER_UNTIL_MS", ticket.id)
