"""What pages wait for: news of the journal, and what models say before it is recorded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remit.pages.live import Changed
    from remit.pages.page import Page
    from remit.service.service import Service


def news_of(service: Service, page: Page, names: dict[str, str]) -> Changed:
    """What waits for the news of a page at this path."""
    match page.live:
        case "words":
            return _Words(service, names["job"]).changed
        case "events":
            return service.streams.changed
        case _:
            return service.streams.heads_changed


class _Words:
    """News of the journal, and of what models say to one job."""

    def __init__(self, service: Service, reference: str) -> None:
        self._service = service
        self._reference = reference
        self._heard = 0

    async def changed(self, mark: int) -> int:
        """Wait for either; the new mark of the journal."""
        job, streams = await self._service.jobs.find(self._reference), self._service.streams
        event = asyncio.create_task(streams.changed(mark), name="remit:live event")
        words = asyncio.create_task(streams.heard(job, self._heard), name="remit:live words")
        try:
            await asyncio.wait([event, words], return_when=asyncio.FIRST_COMPLETED)
            if words.done():
                self._heard = words.result()
            return event.result() if event.done() else mark
        finally:
            for task in (event, words):
                task.cancel()
            await asyncio.wait([event, words])
