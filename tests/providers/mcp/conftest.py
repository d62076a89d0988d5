"""The world of every test of the MCP client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.providers.mcp.world import World, world


@pytest.fixture
async def mcp() -> AsyncIterator[World]:
    """A world with strings for puppets."""
    async with world() as made:
        yield made
