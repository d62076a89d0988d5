"""Holds an answer until there is news, for some seconds, or until the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from remit.api.route import Asked

T = TypeVar("T")


async def held(asked: Asked, news: Coroutine[Any, Any, T], seconds: float) -> T | None:
    """What `news` returns; None if it does not within `seconds`, or if the server stops first."""
    coming = asyncio.ensure_future(news)
    stopping = asyncio.ensure_future(asked.stopping.wait())
    try:
        await asyncio.wait({coming, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        coming.cancel()
        stopping.cancel()
        await asyncio.wait({coming, stopping})
