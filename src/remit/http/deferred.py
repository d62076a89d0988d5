"""A part whose code is loaded with its first request, for it takes longer to load than the rest of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.http.router import Part


class Deferred:
    """Stands in for a part until the first request for it comes."""

    def __init__(self, load: Callable[[], None], opened: Callable[[], AbstractAsyncContextManager[Part]]) -> None:
        self._load = load
        self._opened = opened
        self._part: asyncio.Future[Part] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._closing.set()
            if self._holding is not None:
                await self._holding

    def close_streams(self) -> None:
        if self._part is not None and self._part.done() and self._part.exception() is None:
            self._part.result().close_streams()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if self._part is None:
            self._part = asyncio.get_running_loop().create_future()
            self._holding = asyncio.create_task(self._hold(self._part), name="remit:deferred-part")
        part = await asyncio.shield(self._part)
        await part(scope, receive, send)

    async def _hold(self, found: asyncio.Future[Part]) -> None:
        """Load the part and keep it running until the server stops, all in one task."""
        try:
            await asyncio.to_thread(self._load)
            async with self._opened() as part, part.running():
                found.set_result(part)
                await self._closing.wait()
        except Exception as error:
            if found.done():
                raise
            found.set_exception(error)
