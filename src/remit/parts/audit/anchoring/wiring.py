"""Anchors as the settings say: what registers beside a worker or a server, and what `remit doctor` looks at."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from remit.capability import Upkeep
from remit.errors import RemitError
from remit.parts.audit.settings import AuditSettings
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.parts.audit.anchoring.registrar import Registrar

_log: Final = logging.getLogger("remit.audit")
PART: Final = "audit"
PROBE: Final = "audit.anchors"
_LAST_S: Final = 10.0
"""Seconds for the last records of a process to reach the log, the recorder's own last checkpoint before them."""


def work_on_anchors(remit: Remit, _stop: asyncio.Event, _role: str) -> Upkeep | None:
    """Return what registers beside a worker or a server; None without `audit.anchor_url`."""
    own = settings_of(remit.settings, PART, AuditSettings)
    return Upkeep(PROBE, partial(_register, remit, own)) if own.anchor_url else None


async def _register(remit: Remit, own: AuditSettings, tell: Callable[[str], object]) -> None:
    """Register what the recorder signs until cancelled, and then its end."""
    from remit.parts.audit.anchoring.client import AnchorClient  # noqa: PLC0415 - few processes register
    from remit.parts.audit.anchoring.registrar import Registrar  # noqa: PLC0415 - the same
    from remit.parts.audit.formats.keys import load_signer  # noqa: PLC0415 - the same

    signer = await load_signer(own, os.environ, remit.settings.folder)
    registrar = Registrar(remit.runtime.journal, AnchorClient.of(own), signer, tell)
    try:
        await registrar.run()
    except asyncio.CancelledError:
        await _finish(registrar)
        raise


async def _finish(registrar: Registrar) -> None:
    try:
        async with asyncio.timeout(_LAST_S):
            await registrar.finish()
    except (TimeoutError, RemitError) as error:
        _log.warning("the last records are registered with the next start: %s", str(error) or type(error).__name__)
