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
    server,
    tickets,
    tools,
)

ROUTES: Final[tuple[Route, ...]] = (
    *server.ROUTES,
    *events.ROUTES,
    *jobs.ROUTES,
    *history.ROUTES,
    *artifacts.ROUTES,
    *plans.ROUTES,
    *confirmations.ROUTES,
    *conversations.ROUTES,
    *tools.ROUTES,
    *tickets.ROUTES,
    *derived(),
)
"""The table."""
