"""Whether this process can take work, and what it has counted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from remit.errors import JournalError
from remit.service.gauges import gauges

if TYPE_CHECKING:
    from remit.gateway.readiness import Snapshot
    from remit.gateway.services import Services
    from remit.metrics.registry import Family

_log: Final = logging.getLogger("remit.service")


class Health:
    """The state of one process."""

    def __init__(self, services: Services) -> None:
        """Look at what the process works with."""
        self._services = services

    # --- queries

    async def reachable(self) -> None:
        """Return if the journal answers. Raises JournalError."""
        await self._services.journal.drained()

    async def ready(self) -> Snapshot:
        """Every dependency now. Raise JournalError if the journal does not answer."""
        await self._services.journal.next_due("job")
        return await self._services.readiness.snapshot()

    async def missing(self) -> Snapshot | None:
        """Every dependency, if a required one is not ready; None if all are."""
        if not self._services.readiness.requires:
            return None
        snapshot = await self._services.readiness.snapshot()
        return snapshot if snapshot.missing_required else None

    async def metrics(self) -> list[Family]:
        """Every counter, gauge and histogram as it is now, by name.

        What the journal says is left out while it does not answer: the counters of this process say why.
        """
        families = self._services.metrics.collect()
        try:
            families += await gauges(self._services.journal)
        except JournalError as error:
            _log.warning("the journal's gauges are left out: %s", error)
        return sorted(families, key=lambda family: family.name)
