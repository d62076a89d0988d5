"""The servers that the tests of the pages start."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from remit import Remit
from tests.pages.conftest import Served
from tests.patience import PATIENCE_S


async def fail(served: Served, opened: Remit) -> None:
    """Fail as a test does, while its server answers."""
    async with served(opened) as server:
        assert (await server.get("/health")).status == HTTPStatus.OK
        raise ZeroDivisionError


async def test_a_test_that_fails_leaves_no_server_to_the_next_one(served: Served) -> None:
    """A socket that stays in the event loop keeps the next one of its number out of it: no request comes through."""
    async with Remit(":memory:") as opened:
        with pytest.raises(ZeroDivisionError):
            await fail(served, opened)
        async with served(opened) as server, asyncio.timeout(PATIENCE_S):
            assert (await server.get("/health")).status == HTTPStatus.OK
