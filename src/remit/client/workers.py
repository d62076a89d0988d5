"""Workers on the journal of a server."""

from __future__ import annotations

from remit.client.connection import Connection
from remit.service.workers import WorkerView


class RemoteWorkers:
    """The processes that run jobs; see WorkersPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def views(self) -> list[WorkerView]:
        """Every process that says that it works and is alive."""
        found: list[WorkerView] = await self._connection.ask("workers.page")
        return found
