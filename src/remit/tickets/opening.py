"""The tickets of a process, as its settings say, and the work on TOOL tickets beside `remit serve`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from remit.settings.parts import settings_of
from remit.tickets.derivation import Derivation
from remit.tickets.desk import Desk, DeskSettings
from remit.tickets.runner import RunnerConfig
from remit.tickets.settings import TicketSettings
from remit.tickets.tickets import Tickets, tickets_of

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.service.opening import NounOpening

_log: Final = logging.getLogger("remit.engine")
HEALTH: Final = "worker.tickets"
"""The work of this process on TOOL tickets, as readiness shows it."""
AGAIN_S: Final = 5.0
"""Seconds until it begins again after it failed."""


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


def work_on_tickets(remit: Remit, stop: asyncio.Event, role: str) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what works on tickets beside a server."""
    return partial(keep_tickets, remit, stop) if role == "serve" else None


async def keep_tickets(remit: Remit, stop: asyncio.Event) -> None:
    """Work on TOOL tickets until `stop`, and begin again after whatever ended it."""
    tickets, health = tickets_of(remit.service), remit.service.health
    health.report(HEALTH)
    while not stop.is_set():
        if await remit.service.workers.rested(partial(health.report, HEALTH), AGAIN_S):
            health.report(HEALTH)
        runner = tickets.runner(RunnerConfig(owner=remit.engine.owner), tickets.executor())
        running = asyncio.create_task(runner.run(stop, once=False), name="remit:tickets")
        try:
            if not (await asyncio.wait([running], timeout=AGAIN_S))[0]:
                health.report(HEALTH)
            await running
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the other tickets go on
            _log.error("the work on tickets ended: %s; it starts again in %g s", error, AGAIN_S)
            health.report(HEALTH, str(error))
            await remit.clock.sleep(AGAIN_S)
        finally:
            running.cancel()
            await asyncio.wait([running])
