"""A part that is loaded with its first request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from remit.http.guard import LOOPBACK, Guard
from remit.http.router import Deferred, PartMount, Router
from remit_testing.clock import ManualClock
from tests.http.test_router import Echo, served

pytestmark = pytest.mark.slow


async def test_a_part_is_loaded_once_off_the_event_loop_and_only_if_it_is_asked_for() -> None:
    loads: list[threading.Thread] = []
    parts: list[Echo] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Echo]:
        parts.append(Echo("late"))
        yield parts[-1]
        parts[-1].life.append("closed")

    def app() -> Router:
        late = Deferred(lambda: loads.append(threading.current_thread()), opened)
        return Router(
            Guard(LOOPBACK, [], ManualClock()), [PartMount("/", Echo("all"), None), PartMount("/late", late, None)]
        )

    async with served(app()) as (url, _), httpx2.AsyncClient(base_url=url) as client:
        assert (await client.get("/x")).text.startswith("all")
    assert (loads, parts) == ([], [])
    async with served(app()) as (url, _), httpx2.AsyncClient(base_url=url) as client:
        answers = await asyncio.gather(*(client.get("/late/x") for _ in range(5)))
        assert all(answer.text.startswith("late /late/x") for answer in answers)
    assert len(loads) == len(parts) == 1
    assert loads[0] is not threading.main_thread()
    assert parts[0].life == ["up", "hushed", "down", "closed"]


async def test_a_part_that_cannot_be_loaded_fails_its_requests_alone() -> None:
    def load() -> None:
        raise ImportError("no such module")

    @asynccontextmanager
    async def opened() -> AsyncIterator[Echo]:
        yield Echo("never")

    late = Deferred(load, opened)
    router = Router(
        Guard(LOOPBACK, [], ManualClock()), [PartMount("/", Echo("all"), None), PartMount("/late", late, None)]
    )
    async with served(router) as (url, _), httpx2.AsyncClient(base_url=url) as client:
        assert (await client.get("/late")).status_code == 500
        assert (await client.get("/x")).text.startswith("all")
