"""A live server over a service of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from remit.api.part import Api
from remit.api.table import ROUTES
from remit.clock import SystemClock
from remit.http.access import RequestPlaces
from remit.http.guard import Guard, Token
from remit.http.router import PartMount, Router
from remit.http.server import listen, serve
from remit.service.service import Service


@asynccontextmanager
async def serving(service: Service, tokens: Sequence[Token] = (), port: int = 0) -> AsyncIterator[str]:
    """The URL of a server over `service`, which listens within the block."""
    guard = Guard.of("127.0.0.1", (), tokens, SystemClock())
    stop = asyncio.Event()
    with listen("127.0.0.1", port) as listening:
        router = Router(guard, [PartMount("/", Api(service, ROUTES, RequestPlaces(64)), None)])
        running = asyncio.create_task(serve(router, listening, stop))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stop.set()
            await running
