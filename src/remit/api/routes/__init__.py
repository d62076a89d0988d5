"""Every route: those of declared operations, and those whose handler has a thought of its own."""

from __future__ import annotations

from typing import Final

from remit.api.derived import derived
from remit.api.route import Route
from remit.api.routes import (
    artifacts,
    confirmations,
    conversations,
    events,
    history,
    jobs,
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
    *derived(),
    *workers.ROUTES,
)
"""The table."""
