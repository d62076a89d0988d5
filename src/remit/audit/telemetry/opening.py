"""Telemetry as the settings say: what sends spans beside a worker or a server, and what `remit doctor` looks at."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from remit.audit.kinds import TelemetryBegun
from remit.audit.telemetry.exporter import Exporter, headers_of
from remit.audit.telemetry.settings import TelemetrySettings
from remit.capability import Check, Look, Upkeep
from remit.errors import AppendConflictError, SettingsError
from remit.service.calls import Turns
from remit.settings.address import address
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.app import Remit

_log: Final = logging.getLogger("remit.telemetry")
PART: Final = "telemetry"
STREAM: Final = "telemetry"
KIND: Final = "telemetry"


def work_on_telemetry(remit: Remit, _stop: asyncio.Event, _role: str) -> Upkeep | None:
    """Return what sends spans beside a worker or a server; None without `telemetry.otlp_url`."""
    own = settings_of(remit.settings, PART, TelemetrySettings)
    if not own.otlp_url:
        return None
    exporter = Exporter(remit.runtime.journal, own, os.environ, remit.runtime.services.metrics)
    return Upkeep(PART, partial(_send, remit, exporter))


async def _send(remit: Remit, exporter: Exporter, tell: Callable[[str], object]) -> None:
    """Send spans once no other process does."""
    try:
        async with Turns(remit.runtime.journal).held(STREAM, KIND, TelemetryBegun()) as held:
            await exporter.run(held, tell)
    except AppendConflictError as error:  # another process took over
        _log.info("%s", error)


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
