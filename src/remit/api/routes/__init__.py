"""Every route, by noun. A noun is added here and in a file of its own."""

from __future__ import annotations

from typing import Final

from remit.api.route import Route
from remit.api.routes import (
    artifacts,
    confirmations,
    conversations,
    events,
    history,
    jobs,
    leases,
    plans,
    recipes,
    server,
    servers,
    steps,
    tickets,
    tools,
    workers,
)

ROUTES: Final[tuple[Route, ...]] = (
    *server.ROUTES,
    *events.ROUTES,
    *jobs.ROUTES,
    *history.ROUTES,
    *steps.ROUTES,
    *artifacts.ROUTES,
    *recipes.ROUTES,
    *plans.ROUTES,
    *confirmations.ROUTES,
    *conversations.ROUTES,
    *tools.ROUTES,
    *servers.ROUTES,
    *tickets.ROUTES,
    *leases.ROUTES,
    *workers.ROUTES,
)
"""The table."""
