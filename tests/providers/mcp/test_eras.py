"""Which era of the protocol a server speaks is found out, remembered, and found out again for another program."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.errors import ProviderError
from remit.providers.mcp import supervisor
from remit_testing.providers import call_context
from tests.providers.mcp.world import TOOLS, World, quoted, tool

pytestmark = pytest.mark.slow  # each starts and ends processes

ECHO = "mcp.puppet.echo"


@pytest.mark.parametrize(
    ("eras", "era"), [(["legacy"], "legacy"), (["modern"], "modern"), (["legacy", "modern"], "legacy")]
)
async def test_the_era_is_found_out_and_remembered(mcp: World, eras: list[str], era: str) -> None:
    provider = mcp.provider(plan={"eras": eras})
    assert (await provider.status()).era == era
    mcp.clock.advance(supervisor.STABLE_S)
    await mcp.strings.kill()
    await mcp.strings.started(2)
    assert (await provider.invoke(ECHO, {"text": era}, call_context())).value == era
    assert mcp.strings.times("initialize") == (2 if era == "legacy" else 1)
    assert mcp.strings.times("server/discover") == (2 if era == "modern" else 0)


@pytest.mark.parametrize(
    ("knows", "spoken"),
    [
        (["2024-11-05"], "2024-11-05"),
        (["2025-06-18", "2025-03-26", "2031-01-01"], "2025-06-18"),
        (["2025-11-25"], "2025-11-25"),
    ],
)
async def test_a_server_is_spoken_to_in_the_latest_version_that_it_knows(
    mcp: World, knows: list[str], spoken: str
) -> None:
    provider = mcp.provider(plan={"knows": knows, "eras": ["legacy"]})
    status = await provider.status()
    assert (status.protocol, status.tools) == (spoken, len(TOOLS))
    assert mcp.strings.times("server/discover") == 0


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"knows": ["1999-01-01"], "eras": ["legacy"]}, "Unsupported protocol version"),
        ({"refused": {"initialize": {"code": -32603, "message": "no licence"}}, "eras": []}, "no licence"),
        (
            {"refused": {"server/discover": {"code": -32603, "message": "no licence"}}, "eras": []},
            "no licence",
        ),
    ],
    ids=["version", "legacy", "modern"],
)
async def test_the_reason_that_is_told_is_the_first_that_says_something(
    mcp: World, plan: dict[str, Any], why: str
) -> None:
    with pytest.raises(ProviderError, match=why):
        await mcp.provider(plan=plan).status()


@pytest.mark.parametrize(
    "greeting",
    [
        {"protocolVersion": "2025-11-25"},
        {"protocolVersion": "2025-11-25", "serverInfo": {"name": "puppet"}, "capabilities": None, "instructions": 5},
        {"protocolVersion": "2025-11-25", "serverInfo": [], "capabilities": "x", "instructions": None},
    ],
)
async def test_a_greeting_that_lacks_something_is_a_greeting(mcp: World, greeting: dict[str, Any]) -> None:
    provider = mcp.provider(plan={"greeting": greeting, "eras": ["legacy"], "tools": TOOLS})
    status = await provider.status()
    assert (status.protocol, status.instructions, status.capabilities) == ("2025-11-25", "", {})


async def test_an_era_that_is_given_is_not_doubted(mcp: World) -> None:
    provider = mcp.provider(mcp.server(era="modern"))
    assert (await provider.status()).era == "modern"
    assert mcp.strings.times("initialize") == 0


async def test_a_server_that_takes_long_to_come_up_is_waited_for(mcp: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs such as npx fetch a server first; a second greeting meanwhile would only confuse it."""
    monkeypatch.setattr("remit.providers.mcp.connection.PROBE_S", 0)
    provider = mcp.provider(plan={"mute": ["initialize"], "eras": ["legacy"]})
    listing = asyncio.create_task(provider.list_tools())
    await mcp.strings.heard("initialize")
    mcp.strings.order(unmute="initialize")
    assert len(await listing) == len(TOOLS)


async def test_a_server_that_changes_its_era_is_asked_anew(mcp: World, tmp_path: Path) -> None:
    old, new = mcp.strings.command(eras=["legacy"]), mcp.strings.command(eras=["modern"], tools=[tool("echo")])
    program = tmp_path / "server.sh"
    program.write_text(f"exec {quoted(old)}\n")
    provider = mcp.provider(mcp.server(command=("/bin/sh", str(program))))
    await provider.list_tools()
    mcp.clock.advance(supervisor.STABLE_S)
    program.write_text(f"exec {quoted(new)}\n")
    await mcp.strings.kill()
    await mcp.clock.until_asleep()
    mcp.clock.advance(supervisor._LONGEST_REST_S)
    assert (await provider.status()).era == "modern"
