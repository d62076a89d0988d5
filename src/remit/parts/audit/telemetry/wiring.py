"""Telemetry as the settings say: what sends spans beside a process that records, and what `remit doctor` looks at."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from remit.capability import Check, Look
from remit.errors import AppendConflictError, JournalError, SettingsError
from remit.parts.audit.kinds import TelemetryBegun
from remit.parts.audit.telemetry.settings import TelemetrySettings, target_of
from remit.service.calls import TurnTaking
from remit.settings.parts import settings_of
from remit.settings.pictures import address
from remit.tasks import first

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.parts.audit.telemetry.exporter import Exporter

_log: Final = logging.getLogger("remit.telemetry")
PART: Final = "telemetry"
STREAM: Final = "telemetry"
KIND: Final = "telemetry"
_LAST_S: Final = 2.0
"""Seconds that a process takes longer at most, so that the collector gets what it recorded."""
_AGAIN_S: Final = 5.0


@asynccontextmanager
async def send_beside(remit: Remit) -> AsyncIterator[None]:
    """Send spans within the block, and at its end what is left, unless another process does or the collector is away.

    What is not taken then is sent by the next process that sends. `/health` tells of what is wrong.
    """
    own, tell = settings_of(remit.settings, PART, TelemetrySettings), partial(remit.service.health.report, PART)
    try:
        target = target_of(own, os.environ)
    except SettingsError as error:
        _log.warning("spans are not sent: %s. %s", error.message, error.remedy)
        tell(error.message)
        target = None
    if target is None:
        yield
        return
    from remit.parts.audit.telemetry.exporter import Exporter  # noqa: PLC0415 - most processes have no collector

    exporter = Exporter(remit.runtime.journal, target, remit.runtime.services.metrics, values=own.values)
    tell("")
    task = asyncio.create_task(_send(remit, exporter, tell))
    try:
        yield
    finally:
        exporter.ending.set()
        if await first(task, seconds=_LAST_S) == [None]:
            _log.warning("the collector of spans did not answer within %g s", _LAST_S)


async def _send(remit: Remit, exporter: Exporter, tell: Callable[[str], object]) -> bool:
    """Send spans while no other process does; return True, at the end."""
    turns = TurnTaking(remit.runtime.journal)
    while True:
        await first(remit.service.workers.rested(tell, _AGAIN_S), exporter.ending.wait())
        try:
            await turns.begin(STREAM, KIND, TelemetryBegun())
            async with turns.taken(STREAM, KIND) as held:
                if held is not None:
                    await exporter.run(held, tell)
            if not exporter.ending.is_set():
                await first(turns.wait(STREAM), exporter.ending.wait())
        except AppendConflictError as error:  # another process took over, or the collector takes nothing at the end
            _log.info("%s", error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the process goes on
            tell(str(error) or type(error).__name__)
            _log.warning("spans wait: %s", str(error) or type(error).__name__)
            await first(remit.clock.sleep(_AGAIN_S), exporter.ending.wait())
        if exporter.ending.is_set():
            return True


async def check_telemetry(look: Look) -> list[Check]:
    """Check that spans can be sent as the settings say, and say who sends them; nothing is sent to find out."""
    own = settings_of(look.settings, PART, TelemetrySettings)
    try:
        target = target_of(own, os.environ)
    except SettingsError as error:
        return [Check.failed(PART, error)]
    if target is None:
        return []
    sent = "names, times and values" if own.values else "names and times"
    note = f"spans go to {address(target.url)} ({target.source}), with {sent}"
    return [Check(PART, "ok", f"{note}; {await _sender(look)}")]


async def _sender(look: Look) -> str:
    """Say which process sends."""
    try:
        async with look.open() as remit:
            head = await remit.runtime.journal.head(STREAM)
            if head is not None and head.lease_owner and (head.lease_until or 0) > remit.clock.now():
                return f"process {head.lease_owner.partition(':')[0]} sends them"
    except JournalError:  # another check tells of it
        pass
    return "the next command that records sends them"
