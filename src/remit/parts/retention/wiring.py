"""Retention beside a worker or a server, where the rules are applied from time to time, and in `remit doctor`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from remit.capability import Check, Look, Upkeep
from remit.errors import RemitError, SettingsError
from remit.parts.retention.rule import FLOOR, read_rules

if TYPE_CHECKING:
    from remit.app import Remit

_log: Final = logging.getLogger("remit.retention")
PART: Final = "retention"
_PAUSE_S: Final = 6 * 3_600
"""Seconds between two looks: what was kept for months may stay for some hours more."""
_SHOWN: Final = 20
_SHORT: Final = "six months is the least for a high-risk system (AI Act, articles 19 and 26)"


def keep_to_rules(remit: Remit, _stop: asyncio.Event, _role: str) -> Upkeep | None:
    """Return what applies the rules of `[[retention]]`; None without any. Raise SettingsError."""
    return Upkeep(PART, partial(_apply, remit)) if read_rules(remit.settings) else None


async def _apply(remit: Remit, tell: Callable[[str], object]) -> None:
    """Apply the rules, now and every six hours; what failed is tried again the next time."""
    while True:
        try:
            done = await remit.service.retention.apply()
        except (RemitError, OSError) as error:
            _log.warning("retention: nothing more is pruned for now: %s", error)
            tell(f"nothing more is pruned for now: {error}")
        else:
            tell("")
            if done.pruned:
                _log.info("retention: %d records pruned", len(done.pruned))
            for unit in [unit for unit in done.kept if unit.code][:_SHOWN]:
                _log.warning("retention: %s stays: %s: %s", unit.stream, unit.code, unit.why)
        await remit.clock.sleep(_PAUSE_S)


async def check_retention(look: Look) -> list[Check]:
    """One check for each rule, and one for evidence that goes sooner than its record."""
    try:
        rules = read_rules(look.settings)
    except SettingsError as error:
        return [Check.failed("retention", error)]
    days = look.settings.evidence.retention_days
    checks = [
        Check("retention", "warn", f"{rule.words}, and {_SHORT}", f'Write keep = "{FLOOR}d" or more.')
        if rule.is_short
        else Check("retention", "ok", rule.words)
        for rule in rules
    ]
    if 0 < days < FLOOR:
        checks.append(
            Check(
                "retention",
                "warn",
                f"evidence.retention_days is {days}, and {_SHORT}",
                f"Leave it out, or set it to {FLOOR} or more; 0 is forever.",
            )
        )
    return checks
