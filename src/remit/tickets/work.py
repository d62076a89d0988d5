"""The work on TOOL tickets beside `remit serve`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from remit.tickets.runner import RunnerConfig
from remit.tickets.tickets import tickets_of

if TYPE_CHECKING:
    from remit.app import Remit

_log: Final = logging.getLogger("remit.engine")
HEALTH: Final = "worker.tickets"
"""The work of this process on TOOL tickets, as readiness shows it."""
AGAIN_S: Final = 5.0
"""Seconds until it begins again after it failed."""


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
