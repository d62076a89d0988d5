"""Tickets: TRIAGE asks what to do, TOOL does it through the gateway, REPLY answers (contract: tickets)."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun, kinds_of

CAPABILITIES: Final = (
    Capability(
        name="tickets",
        about="Messages that become tool runs and replies.",
        settings="remit.parts.tickets.settings:TicketSettings",
        recipes=("remit.parts.tickets.recipe:ticket_run",),
        inner_recipes=("ticket_run",),
        nouns=(
            Noun(
                name="tickets",
                kind="remit.parts.tickets.tickets:Tickets",
                open="remit.parts.tickets.wiring:open_tickets",
                remote="remit.parts.tickets.remote:RemoteTickets",
            ),
        ),
        routes="remit.parts.tickets.routes:ROUTES",
        kinds=kinds_of(
            "remit.parts.tickets.kinds", "ticket", "created leased released completed failed blocked retried derived"
        ),
        queues=("ticket",),
        works="remit.parts.tickets.wiring:work_on_tickets",
        commands=(
            Command(
                word="tickets",
                section="Work",
                about="Work with tickets: messages that become tool runs and replies.",
                command="remit.parts.tickets.commands:command",
            ),
        ),
        pages="remit.parts.tickets.pages:PAGES",
    ),
)
