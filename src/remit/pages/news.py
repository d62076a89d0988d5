"""News that pages wait for: news of the journal, of the tools, and what models say before it is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remit.pages.live import Changed
    from remit.pages.page import Page
    from remit.service.service import Service


def news_of(service: Service, page: Page, names: dict[str, str]) -> AbstractContextManager[Changed]:
    """Return what waits for the news of a page at this path, within the block."""
    match page.live:
        case "words":
            return nullcontext(_Words(service, names["job"]).changed)
        case "tools":
            return _tools(service)
        case "events":
            return nullcontext(service.streams.changed)
        case _:
            return nullcontext(service.streams.heads_changed)


class _Words:
    """News of the journal, and of what models say to one job."""

    def __init__(self, service: Service, reference: str) -> None:
        self._service = service
        self._reference = reference
        self._heard = 0

    async def changed(self, mark: int) -> int:
        """Wait for either; the new mark of the journal."""
        streams = self._service.streams
        job = await self._service.jobs.find(self._reference)
        reached, heard = await _first(streams.changed(mark), streams.heard(job, self._heard))
        self._heard = self._heard if heard is None else heard
        return mark if reached is None else reached


@contextmanager
def _tools(service: Service) -> Iterator[Changed]:
    """News of whole streams, and of the tools."""
    told = asyncio.Event()

    async def changed(mark: int) -> int:
        reached, _ = await _first(service.streams.heads_changed(mark), told.wait())
        told.clear()
        return mark if reached is None else reached

    end = service.tools.watch(told.set)
    try:
        yield changed
    finally:
        end()


async def _first(one: Coroutine[Any, Any, int], other: Coroutine[Any, Any, int]) -> tuple[int | None, int | None]:
    """The results of two waits, of which the first to end ends both; None for one that had not ended."""
    tasks = [asyncio.create_task(each, name="remit:live news") for each in (one, other)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first, second = [task.result() if task.done() else None for task in tasks]
        return first, second
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
