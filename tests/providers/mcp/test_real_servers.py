"""Servers that people use: listed, called, killed, called again, and held to their pins."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from remit.providers.mcp import supervisor
from remit.tools.catalog import Catalog
from remit_testing.providers import call_context
from tests.patience import PATIENCE_S
from tests.peers import servers
from tests.providers.mcp.world import World, alive

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Peer(NamedTuple):
    """A server, and one call of it."""

    name: str
    command: Callable[[Path], list[str]]
    tools: int
    call: str = ""
    args: Callable[[Path], dict[str, Any]] = lambda _folder: {}
    says: str = ""


def git_in(folder: Path) -> list[str]:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)  # noqa: S607 - git is where the PATH has it
    return servers.git(folder)


PEERS: Final = [
    Peer("everything", lambda _: servers.everything(), 10, "echo", lambda _: {"message": "hello"}, "hello"),
    Peer("filesystem", servers.filesystem, 10, "list_directory", lambda folder: {"path": str(folder)}, "here.txt"),
    Peer("memory", lambda folder: servers.memory(folder / "graph.jsonl"), 9, "read_graph", says="entities"),
    Peer("git", git_in, 10, "git_status", lambda folder: {"repo_path": str(folder)}, "here.txt"),
    Peer("time", lambda _: servers.time(), 2, "get_current_time", lambda _: {"timezone": "UTC"}, "UTC"),
    Peer(
        "sqlite",
        lambda folder: servers.sqlite(folder / "d.db"),
        5,
        "read_query",
        lambda _: {"query": "SELECT 42"},
        "42",
    ),
    Peer("playwright", lambda _: servers.playwright(), 20),
    Peer("conformance", lambda _: servers.conformance(), 5, "test_simple_text", says="text"),
]


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
async def test_a_real_server_is_listed_called_killed_called_again_and_pinned(
    mcp: World, tmp_path: Path, peer: Peer
) -> None:
    (tmp_path / "here.txt").write_text("hello")
    provider = mcp.provider(mcp.server(command=tuple(peer.command(tmp_path)), cwd=str(tmp_path), level="L0"))
    catalog = Catalog([provider])
    tools = await catalog.tools()
    assert len(tools) >= peer.tools
    assert [(each.meta.name, each.quarantined) for each in tools if each.quarantined] == []
    before = await called(mcp, provider, peer, tmp_path)

    process = (await provider._supervisor.connection()).process
    assert process is not None
    assert process._transport is not None
    pid = process._transport.get_pid()
    mcp.clock.advance(supervisor.STABLE_S)
    os.killpg(pid, signal.SIGKILL)
    await process._gone.wait()
    after = await called(mcp, provider, peer, tmp_path)
    assert peer.says in before
    assert peer.says in after
    assert not alive(pid)

    assert await mcp.pins().withheld("puppet", await provider.definitions()) == {}, "it lists the same again"
    pin = await mcp.pins().load("puppet")
    assert pin is not None
    assert len(pin.tools) == len(tools)
    await catalog.close()


async def called(mcp: World, provider: Any, peer: Peer, folder: Path) -> str:
    if not peer.call:
        await provider.list_tools()
        return ""
    name = next(meta.name for meta in await provider.list_tools() if meta.definition["name"] == peer.call)
    async with asyncio.timeout(PATIENCE_S):
        return str((await provider.invoke(name, peer.args(folder), call_context())).value)
