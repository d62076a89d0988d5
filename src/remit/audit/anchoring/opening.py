"""Anchors as the settings say: what registers beside a worker or a server, and what `remit doctor` looks at."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from remit.audit.settings import AuditSettings
from remit.errors import RemitError
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.audit.anchoring.registrar import Registrar

_log: Final = logging.getLogger("remit.audit")
PART: Final = "audit"
_AGAIN_S: Final = 5.0
"""Seconds until something that failed is tried again."""
_LAST_S: Final = 10.0
"""Seconds for the last records of a process to reach the log, the recorder's own last checkpoint before them."""


def work_on_anchors(remit: Remit, _stop: asyncio.Event, _role: str) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what registers beside a worker or a server; None without `audit.anchor_url`."""
    own = settings_of(remit.settings, PART, AuditSettings)
    return partial(keep_anchors, remit, own) if own.anchor_url else None


async def keep_anchors(remit: Remit, own: AuditSettings) -> None:
    """Register what the recorder signs until cancelled, then its end; what fails is told in `/health`."""
    from remit.audit.anchoring.client import AnchorClient  # noqa: PLC0415 - few processes register
    from remit.audit.anchoring.registrar import Registrar  # noqa: PLC0415 - the same
    from remit.audit.formats.keys import load_signer  # noqa: PLC0415 - the same

    tell = partial(remit.service.health.report, PART)
    tell("")
    while True:
        await remit.service.workers.rested(tell, _AGAIN_S)
        try:
            client = AnchorClient.of(own)
            signer = await load_signer(own, os.environ, remit.settings.folder)
            registrar = Registrar(remit.runtime.journal, client, signer, tell)
            try:
                await registrar.run()
            except asyncio.CancelledError:
                await _finish(registrar)
                raise
        except RemitError as error:
            tell(str(error))
            _log.warning("records are registered again in %g s: %s", _AGAIN_S, error)
        await remit.clock.sleep(_AGAIN_S)


async def _finish(registrar: Registrar) -> None:
    try:
        async with asyncio.timeout(_LAST_S):
            await registrar.finish()
    except (TimeoutError, RemitError) as error:
        _log.warning("the last records are registered with the next start: %s", str(error) or type(error).__name__)
