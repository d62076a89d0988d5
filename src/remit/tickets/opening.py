"""Opens the tickets of a process as its settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.settings.parts import settings_of
from remit.tickets.derivation import Derivation
from remit.tickets.desk import Desk, DeskSettings
from remit.tickets.settings import TicketSettings
from remit.tickets.tickets import Tickets

if TYPE_CHECKING:
    from remit.service.opening import NounOpening


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
    desk = Desk(parts.journal, parts.services.metrics, parts.chance, chosen)
    return Tickets(desk, opening.service.jobs, opening.principal, opening.worker)
