"""Retention beside a worker or a server: the rules are applied from time to time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from remit.errors import RemitError
from remit.retention.rule import read_rules

if TYPE_CHECKING:
    from remit.app import Remit

_log: Final = logging.getLogger("remit.retention")
_PAUSE_S: Final = 6 * 3_600
"""Seconds between two looks: what was kept for months may stay for some hours more."""
_SHOWN: Final = 20


def keep_to_rules(remit: Remit, _stop: asyncio.Event, _role: str) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what applies the rules of `[[retention]]`; None without any. Raise SettingsError."""
    return partial(_apply, remit) if read_rules(remit.settings) else None


async def _apply(remit: Remit) -> None:
    """Apply the rules, now and every six hours; what failed is tried again the next time."""
    while True:
        try:
            done = await remit.service.retention.apply()
        except (RemitError, OSError) as error:
            _log.warning("retention: nothing more is pruned for now: %s", error)
        else:
            if done.pruned:
                _log.info("retention: %d records pruned", len(done.pruned))
            for unit in [unit for unit in done.kept if unit.code][:_SHOWN]:
                _log.warning("retention: %s stays: %s: %s", unit.stream, unit.code, unit.why)
        await remit.clock.sleep(_PAUSE_S)
