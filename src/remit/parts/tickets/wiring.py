"""The tickets of a process, as its settings say, and the work on TOOL tickets beside `remit serve`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from remit.capability import Upkeep
from remit.parts.tickets.desk import DeskSettings, TicketDesk
from remit.parts.tickets.history import Derivation
from remit.parts.tickets.runner import RunnerConfig
from remit.parts.tickets.settings import TicketSettings
from remit.parts.tickets.tickets import Tickets, tickets_of
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.service.noun_means import NounOpening

PROBE: Final = "worker.tickets"
"""The work of this process on TOOL tickets, as readiness shows it."""


def open_tickets(opening: NounOpening) -> Tickets:
    """Return the tickets of a journal; runs of their steps are its jobs."""
    parts = opening.parts
    settings = parts.settings
    own = settings_of(settings, "tickets", TicketSettings)
    chosen = DeskSettings(
        schema_gate=settings.tools.schema_gate,
        no_mcp=settings.tools.no_mcp,
        derivation=Derivation(replies=own.derive_replies, tool_only=own.tool_only),
        cutover_until_ms=own.cutover_until_ms or None,
        max_evidence=settings.evidence.max_items_per_report,
    )
    desk = TicketDesk(parts.journal, parts.services.metrics, parts.chance, chosen)
    return Tickets(desk, opening.service.jobs, opening.principal, opening.worker)


def work_on_tickets(remit: Remit, stop: asyncio.Event, role: str) -> Upkeep | None:
    """Return what works on tickets beside a server."""
    return Upkeep(PROBE, partial(_work, remit, stop)) if role == "serve" else None


async def _work(remit: Remit, stop: asyncio.Event, _tell: Callable[[str], object]) -> None:
    """Work on TOOL tickets until `stop`."""
    tickets = tickets_of(remit.service)
    runner = tickets.runner(RunnerConfig(owner=remit.engine.owner), tickets.executor())
    await runner.run(stop, once=False)
