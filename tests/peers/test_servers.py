from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.peers import servers

pytestmark = pytest.mark.slow

Started = Callable[[Path], list[str]]

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "remit-tests", "version": "1"},
}


def git_in(folder: Path) -> list[str]:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)  # noqa: S607 - git is where the PATH has it
    return servers.git(folder)


PEERS: list[tuple[str, Started, set[str]]] = [
    ("everything", lambda _folder: servers.everything(), {"echo", "get-sum"}),
    ("filesystem", servers.filesystem, {"read_text_file", "write_file"}),
    ("memory", lambda folder: servers.memory(folder / "graph.jsonl"), {"create_entities", "read_graph"}),
    ("playwright", lambda _folder: servers.playwright(), {"browser_click", "browser_navigate"}),
    ("git", git_in, {"git_log", "git_status"}),
    ("time", lambda _folder: servers.time(), {"convert_time", "get_current_time"}),
    ("sqlite", lambda folder: servers.sqlite(folder / "data.db"), {"read_query", "write_query"}),
    ("conformance", lambda _folder: servers.conformance(), {"test_simple_text", "test_elicitation"}),
]


class Line:
    """Bare JSON-RPC over a child's stdio, one message a line."""

    def __init__(self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._asked = 0

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._asked += 1
        await self._send({"id": self._asked, "method": method, "params": params})
        while line := await self._stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._asked and "method" not in message:
                result: dict[str, Any] = message["result"]
                return result
        raise EOFError(f"the server closed its output before it answered {method}")

    async def tell(self, method: str) -> None:
        await self._send({"method": method})

    async def _send(self, message: dict[str, Any]) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await self._stdin.drain()


@asynccontextmanager
async def started(command: list[str], folder: Path) -> AsyncIterator[Line]:
    """A server in a process group of its own, which ends with the block."""
    child = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, limit=1 << 24, start_new_session=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield Line(child.stdin, child.stdout)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        await child.communicate()


@pytest.mark.parametrize(("command", "names"), [row[1:] for row in PEERS], ids=[row[0] for row in PEERS])
async def test_a_real_server_starts_and_lists_its_tools(command: Started, names: set[str], tmp_path: Path) -> None:
    async with started(command(tmp_path), tmp_path) as server:
        welcome = await server.ask("initialize", INITIALIZE)
        await server.tell("notifications/initialized")
        listed = await server.ask("tools/list", {})

    assert welcome["protocolVersion"] == "2025-06-18"
    assert names <= {tool["name"] for tool in listed["tools"]}


def test_the_conformance_suite_has_the_node_it_needs() -> None:
    shown = subprocess.run([servers.NODE22, "--version"], check=True, capture_output=True, text=True)
    assert int(shown.stdout.removeprefix("v").partition(".")[0]) >= 22


def test_a_peer_that_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(FileNotFoundError, match="make peers"):
        servers.module("no-such-package/index.js")
