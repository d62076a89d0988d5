"""The provider port's contract, over both transports and in both eras."""

from __future__ import annotations

import pytest

from remit_testing.providers import PROVIDER_CHECKS, Check, Sample
from tests.providers.mcp.sdk import http_server
from tests.providers.mcp.world import World, tool

pytestmark = pytest.mark.slow

SAMPLE = Sample("mcp.puppet.echo", {"text": "hello"})


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_stdio_keeps_the_contract(mcp: World, check: Check, era: str) -> None:
    await check(lambda: mcp.provider(plan={"eras": [era], "tools": [tool("echo"), tool("hang")]}), SAMPLE)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_streamable_http_keeps_the_contract(mcp: World, check: Check, era: str) -> None:
    async with http_server() as server:
        await check(lambda: mcp.provider(mcp.server(url=server.url, era=era)), SAMPLE)
        for provider in mcp.providers:
            await provider.close()
