"""Restarts of MCP servers that people ask for: every process of the journal that uses the server hears of them.

A request is an event in one stream for all servers. A process that stays up looks there whenever heads change, once a
second at most, and begins with what is asked after it has: a server that starts later is new anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from remit.journal.kinds import McpRestartRequested, decode
from remit.journal.owner import Owner
from remit.tasks import Tasks
from remit.tools.remote import PREFIX, Remote

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.tools.catalog import Catalog

STREAM: Final = "mcp_restarts"
KIND: Final = "mcp_restarts"
"""The kind of the stream."""
LOOK_S: Final = 1.0
"""Seconds between two looks at least."""


class Restarts:
    """The restarts that were asked for on one journal."""

    def __init__(self, journal: Journal, catalog: Catalog) -> None:
        self._journal = journal
        self._catalog = catalog
        self._process = str(Owner.this())
        self._seen: int | None = None
        """The last request that was looked at; None: none is ours yet."""
        self._under_way = Tasks()

    async def ask(self, server: str, by: str, *, here: bool) -> None:
        """Have processes start a server again; this one not, if it was restarted `here`. Durable when it returns."""
        request = McpRestartRequested(server=server, by=by, process=self._process if here else "")
        await self._journal.post(STREAM, KIND, request, wakes=(STREAM,))

    async def look(self) -> None:
        """Begin to restart the servers of this process that others asked for since it looked last."""
        if self._seen is None:
            head = await self._journal.head(STREAM)
            self._seen = head.seq if head is not None else 0
        for event in await self._journal.page(STREAM, self._seen):
            self._seen = event.seq
            request = decode(event.kind, event.data)
            if isinstance(request, McpRestartRequested) and request.process != self._process:
                provider: object = self._catalog.provider(PREFIX + request.server)
                if isinstance(provider, Remote):
                    self._under_way.begin(provider.restart(request.by))

    async def obey(self) -> None:
        """Look whenever heads change, until this is cancelled. Raises JournalError."""
        mark = 0
        try:
            while True:
                mark = await self._journal.heads_changed(mark)
                await self.look()
                await self._journal.clock.sleep(LOOK_S)
        finally:
            self._under_way.cancel()
