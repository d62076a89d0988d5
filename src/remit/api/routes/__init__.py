"""Every route, by noun. A noun is added here and in a file of its own."""

from __future__ import annotations

from typing import Final

from remit.api.route import Route
from remit.api.routes import events, jobs, server, tickets

ROUTES: Final[tuple[Route, ...]] = (*server.ROUTES, *events.ROUTES, *jobs.ROUTES, *tickets.ROUTES)
"""The table."""
