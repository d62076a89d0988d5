from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.peers import servers
from tests.peers.client import LEGACY, Client, on_stdio

pytestmark = pytest.mark.slow

Started = Callable[[Path], list[str]]


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


@pytest.mark.parametrize(("command", "names"), [row[1:] for row in PEERS], ids=[row[0] for row in PEERS])
async def test_a_real_server_starts_and_lists_its_tools(command: Started, names: set[str], tmp_path: Path) -> None:
    async with on_stdio(command(tmp_path), tmp_path) as lines:
        client = Client(lines)
        welcome = await client.introduction()
        listed = await client.ask("tools/list", {})

    assert welcome["protocolVersion"] == LEGACY
    assert names <= {tool["name"] for tool in listed["tools"]}


def test_the_conformance_suite_has_the_node_it_needs() -> None:
    shown = subprocess.run([servers.NODE22, "--version"], check=True, capture_output=True, text=True)
    assert int(shown.stdout.removeprefix("v").partition(".")[0]) >= 22


def test_a_peer_that_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(FileNotFoundError, match="make peers"):
        servers.module("no-such-package/index.js")
