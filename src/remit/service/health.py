"""Whether this process can take work, and what it has counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.gateway.readiness import Snapshot
    from remit.gateway.services import Services
    from remit.metrics.registry import Family


class Health:
    """The state of one process."""

    def __init__(self, services: Services) -> None:
        """Look at what the process works with."""
        self._services = services

    # --- queries

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

    def metrics(self) -> list[Family]:
        """Every counter, gauge and histogram as it is now."""
        return self._services.metrics.collect()
