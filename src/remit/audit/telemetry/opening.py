"""Telemetry as the settings say: what sends spans beside a worker or a server, and what `remit doctor` looks at."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from remit.audit.kinds import TelemetryBegun
from remit.audit.telemetry.exporter import Exporter, headers_of
from remit.audit.telemetry.settings import TelemetrySettings
from remit.capability import Check, Look
from remit.errors import AppendConflictError, RemitError, SettingsError
from remit.service.calls import Turns
from remit.settings.address import address
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.app import Remit

_log: Final = logging.getLogger("remit.telemetry")
PART: Final = "telemetry"
STREAM: Final = "telemetry"
KIND: Final = "telemetry"
_AGAIN_S: Final = 5.0
"""Seconds until something that failed is tried again."""


def work_on_telemetry(remit: Remit, _stop: asyncio.Event, _role: str) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what sends spans beside a worker or a server; None without `telemetry.otlp_url`."""
    own = settings_of(remit.settings, PART, TelemetrySettings)
    return partial(keep_telemetry, remit, own) if own.otlp_url else None


async def keep_telemetry(remit: Remit, own: TelemetrySettings) -> None:
    """Send spans once no other process does, until cancelled; what fails is told in `/health`, and tried again."""
    journal, tell = remit.runtime.journal, partial(remit.service.health.report, PART)
    exporter = Exporter(journal, own, os.environ, remit.runtime.services.metrics, tell)
    tell("")
    while True:
        await remit.service.workers.rested(tell, _AGAIN_S)
        try:
            async with Turns(journal).held(STREAM, KIND, TelemetryBegun()) as held:
                tell("")
                await exporter.run(held)
        except AppendConflictError as error:  # another process took over
            _log.info("%s", error)
        except RemitError as error:
            tell(str(error))
            _log.warning("spans are sent again in %g s: %s", _AGAIN_S, error)
        await remit.clock.sleep(_AGAIN_S)


async def check_telemetry(look: Look) -> list[Check]:
    """Check that spans can be sent as the settings say; nothing is sent to find out."""
    own = settings_of(look.settings, PART, TelemetrySettings)
    if not own.otlp_url:
        return []
    try:
        headers_of(own, os.environ)
    except SettingsError as error:
        return [Check.failed(PART, error)]
    sent = "names, times and values" if own.values else "names and times"
    return [Check(PART, "ok", f"spans go to {address(own.otlp_url)}, with {sent}")]
