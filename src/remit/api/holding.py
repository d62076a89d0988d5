"""Holds an answer until there is news, for some seconds, or until the client leaves or the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from remit.api.route import ApiRequest

T = TypeVar("T")


async def held(asked: ApiRequest, news: Coroutine[Any, Any, T], seconds: float | None) -> T | None:
    """Return what `news` returns; None if it does not within `seconds`, or if client or server are gone first."""
    coming = asyncio.ensure_future(news)
    waits: set[asyncio.Future[Any]] = {
        coming,
        asyncio.ensure_future(asked.stopping.wait()),
        asyncio.ensure_future(asked.left()),
    }
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
