"""What goes on beside a command that stays up: the engine, the runner of TOOL tickets, and servers that must be there.

Each part begins again when it fails, and says so in the log and in `/health`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from remit.errors import JournalError
from remit.gateway.probes import JOBS, TICKETS

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.wiring.notify import Notifier

_log: Final = logging.getLogger("remit.engine")
AGAIN_S: Final = 5.0
"""Seconds until a part that failed begins again."""
_LAST_S: Final = 5.0
"""Seconds for messages that are on their way when the process stops."""


@asynccontextmanager
async def beside(*parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run parts within the block."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def keep_engine(remit: Remit) -> None:
    """Start the engine again each time the journal failed it: a server stays up, and so do its jobs."""
    engine, health = remit.engine, remit.service.health
    while True:
        health.report(JOBS)
        try:
            if engine.failure is not None:
                raise engine.failure
            await engine.stopped()
        except JournalError as error:
            _log.warning("the worker starts again in %g s", AGAIN_S)
            health.report(JOBS, str(error))
        await remit.clock.sleep(AGAIN_S)
        await engine.restart()


async def keep_tickets(remit: Remit, stop: asyncio.Event) -> None:
    """Work on TOOL tickets until `stop`, and begin again after whatever ended it."""
    from remit.tickets.runner import RunnerConfig

    tickets, health = remit.service.tickets, remit.service.health
    health.report(TICKETS)
    while not stop.is_set():
        runner = tickets.runner(RunnerConfig(owner=remit.engine.owner), tickets.executor())
        running = asyncio.create_task(runner.run(stop, once=False), name="remit:tickets")
        try:
            if not (await asyncio.wait([running], timeout=AGAIN_S))[0]:
                health.report(TICKETS)
            await running
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the other tickets go on
            _log.error("the work on tickets ended: %s; it starts again in %g s", error, AGAIN_S)
            health.report(TICKETS, str(error))
            await remit.clock.sleep(AGAIN_S)
        finally:
            running.cancel()
            await asyncio.wait([running])


async def keep_required(remit: Remit) -> None:
    """Connect what `[readiness] required` names, at once and again while it is away."""
    while True:
        await remit.service.health.reach()
        await remit.clock.sleep(AGAIN_S)


async def keep_notifier(remit: Remit, notifier: Notifier) -> None:
    """Tell the targets of `[[notify]]`, and begin again after a failure of the journal."""
    engine = notifier.engine
    try:
        while True:
            try:
                await notifier.begin()
                await engine.stopped()
            except JournalError as error:
                _log.warning("notifications start again in %g s: %s", AGAIN_S, error)
            await remit.clock.sleep(AGAIN_S)
    finally:
        await engine.drain(_LAST_S)
        await engine.stop()
