"""Telemetry as the settings say: what sends spans and metrics beside a process, and what `remit doctor` looks at."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from remit.capability import Check, Look
from remit.errors import AppendConflictError, JournalError, SettingsError
from remit.parts.audit.kinds import TelemetryBegun
from remit.parts.audit.telemetry.settings import Signal, TelemetrySettings, target_of
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
    """Send spans and metrics within the block, and at its end what is left, unless the collector is away.

    Spans that are not taken then are sent by the next process that sends. `/health` tells of what is wrong.
    """
    own, ending = settings_of(remit.settings, PART, TelemetrySettings), asyncio.Event()
    senders = [_sender_of(remit, own, signal, ending) for signal in get_args(Signal)]
    tasks = [asyncio.create_task(sender) for sender in senders if sender is not None]
    try:
        yield
    finally:
        ending.set()
        late = (await asyncio.wait(tasks, timeout=_LAST_S))[1] if tasks else ()
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=bool(late))
        if late:
            _log.warning("the collector did not answer within %g s", _LAST_S)


def _sender_of(
    remit: Remit, own: TelemetrySettings, signal: Signal, ending: asyncio.Event
) -> Coroutine[Any, Any, object] | None:
    """Return what sends a signal as the settings say; None: nothing does."""
    probe, things = (PART, "spans") if signal == "traces" else (f"{PART}.{signal}", signal)
    tell = partial(remit.service.health.report, probe)
    try:
        target = target_of(own, os.environ, signal)
    except SettingsError as error:
        _log.warning("%s are not sent: %s. %s", things, error.message, error.remedy)
        tell(error.message)
        return None
    if target is None:
        return None
    tell("")
    if signal == "metrics":
        from remit.parts.audit.telemetry.metrics import MetricsExporter  # noqa: PLC0415 - few processes send them

        return MetricsExporter(remit.service.health, target, remit.clock, ending).run(own.metrics_seconds, tell)
    from remit.parts.audit.telemetry.exporter import Exporter  # noqa: PLC0415 - most processes have no collector

    services = remit.runtime.services
    return _send(remit, Exporter(remit.runtime.journal, target, services.metrics, ending, values=own.values), tell)


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
    note += f"; {await _sender(look)}"
    try:
        metrics = target_of(own, os.environ, "metrics")
    except SettingsError as error:
        return [Check(PART, "ok", note), Check.failed(PART, error)]
    return [Check(PART, "ok", note + (f"; metrics go to {address(metrics.url)}" if metrics else ""))]


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
