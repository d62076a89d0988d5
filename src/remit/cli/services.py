"""The services beside a command that stays up: the engine, servers that must be there, and the work of parts.

Each part begins again when it fails, whatever it was, and says so in the log and in `/health`. Beside a journal that
runs no jobs they rest: what is recorded there is served all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from remit.errors import JournalError
from remit.gateway.readiness import JOBS

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.capability import Upkeep

_log: Final = logging.getLogger("remit.engine")
AGAIN_S: Final = 5.0
"""Seconds until a part that failed begins again."""


@asynccontextmanager
async def beside(*parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run parts within the block; one that ends by an error is told of in the log."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    for task in tasks:
        task.add_done_callback(_tell)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _tell(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("what goes on beside the command ended: %s", str(error) or type(error).__name__)


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
            health.report(JOBS, str(error))
            if not await remit.service.workers.rested(partial(health.report, JOBS), AGAIN_S):
                _log.warning("the worker starts again in %g s", AGAIN_S)
                await remit.clock.sleep(AGAIN_S)
        await engine.restart()


async def keep_part(remit: Remit, upkeep: Upkeep) -> None:
    """Do the work of a part until cancelled."""
    tell = partial(remit.service.health.report, upkeep.probe)
    while True:
        tell("")
        await remit.service.workers.rested(tell, AGAIN_S)
        tell("")
        try:
            await upkeep.run(tell)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the other parts go on
            reason = str(error) or type(error).__name__
            _log.error("%s: %s; it starts again in %g s", upkeep.probe, reason, AGAIN_S)
            tell(reason)
        await remit.clock.sleep(AGAIN_S)


async def keep_restarts(remit: Remit) -> None:
    """Start MCP servers again as people ask for it, in whatever process of the journal."""
    while True:
        with suppress(JournalError):  # the engine, or the next call, tells of it
            await remit.service.servers.restarts.obey()
        await remit.clock.sleep(AGAIN_S)


async def keep_required(remit: Remit) -> None:
    """Connect what `[readiness] required` names, at once and again while it is away."""
    while True:
        await remit.service.health.reach()
        await remit.clock.sleep(AGAIN_S)
