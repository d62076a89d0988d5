"""What reaches a client through Remit, against a direct connection: seven servers, every answer, field by field.

Every run compares a few ways for two servers; REMIT_TEST_FIDELITY=1 compares all, REMIT_TEST_SERVERS=1 twelve servers
more behind `wrap`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.peers import servers
from tests.peers.client import Client, on_stdio, over_http
from tests.peers.fidelity import SUBJECTS, Names, Subject, answers, comparison
from tests.peers.published import PUBLISHED

pytestmark = pytest.mark.slow

REMIT: Final = str(Path(sys.executable).parent / "remit")
ROOT: Final = servers.ROOT
ALL: Final = bool(os.environ.get("REMIT_TEST_FIDELITY"))
KINDS: Final = {
    "wrap": ("introduction", "tools", "results", "errors", "other answers"),
    "serve": ("tools", "results", "errors", "other answers"),
}
"""What a command passes on as the server said it; a client of `serve` meets Remit, with many servers behind."""
RULES: Final = """
[[policy.rules]]
id = "all"
effect = "allow"
tools = ["mcp.*"]
"""


class Way(NamedTuple):
    """How a client reaches the servers."""

    command: str
    transport: str
    modern: bool

    def __str__(self) -> str:
        http = " --http" if self.transport == "http" else ""
        return f"{self.command}{http}, {'2026-07-28' if self.modern else '2025-11-25'}"


WAYS: Final = [
    Way(command, transport, modern)
    for command in ("wrap", "serve")
    for transport in ("stdio", "http")
    for modern in (False, True)
]
FEW: Final = [WAYS[0], WAYS[3], WAYS[5], WAYS[6]]
"""Each command, each transport and each era twice."""
published = pytest.mark.skipif(
    not os.environ.get("REMIT_TEST_SERVERS"), reason="`make servers` installs the published servers"
)
ROWS: Final = [
    pytest.param(subject, way, id=f"{subject.name}-{way}")
    for subject in SUBJECTS
    for way in WAYS
    if ALL or (subject.name == "full" and way in FEW) or (subject.name == "everything" and way == WAYS[0])
] + [pytest.param(subject, WAYS[0], id=f"{subject.name}-{WAYS[0]}", marks=published) for subject in PUBLISHED]


def folder_of(subject: Subject, parent: Path) -> Path:
    """A folder with the server's first state; always the same, since servers name it."""
    folder = parent / "state"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subject.prepare(folder)
    return folder


def command_of(way: Way, subject: Subject, folder: Path, tools: list[str]) -> list[str]:
    """Remit in front of a server, with its journal and its rules beside the server's folder."""
    config = folder.parent / "remit.toml"
    http = ["--http", "--port", "0"] if way.transport == "http" else []
    server = subject.command(folder)
    if way.command == "wrap":
        config.write_text(RULES)
        levels = [word for tool in tools for word in ("--level", f"{tool}=L0")]
        return [REMIT, "--config", str(config), "mcp", "wrap", *http, "--name", subject.name, *levels, "--", *server]
    config.write_text(f"""
[[mcp.servers]]
name = "{subject.name}"
command = {json.dumps(server)}
cwd = {json.dumps(str(folder))}
tools = {{ {", ".join(f'"{tool}" = "L0"' for tool in tools)} }}
{RULES}""")
    return [REMIT, "--config", str(config), "mcp", "serve", *http]


def names(way: Way, subject: Subject) -> Names:
    """Names of tools and prompts as clients see them."""
    return str if way.command == "wrap" else f"mcp__{subject.name}__{{}}".format


@asynccontextmanager
async def connected(way: Way, command: list[str], folder: Path) -> AsyncIterator[Client]:
    """A client of a process that ends with the block."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "REMIT_TRUST": "1"}
    async with on_stdio(command, folder, env) as lines:
        if way.transport == "stdio":
            yield Client(lines, modern=way.modern)
            return
        async with over_http(await lines.line()) as posts:
            yield Client(posts, modern=way.modern)


@pytest.mark.parametrize(("subject", "way"), ROWS)
async def test_what_a_server_says_arrives_as_it_was(subject: Subject, way: Way, tmp_path: Path) -> None:
    folder = folder_of(subject, tmp_path)
    async with on_stdio(subject.command(folder), folder) as lines:
        direct = await answers(Client(lines), subject)
    folder = folder_of(subject, tmp_path)
    async with connected(way, command_of(way, subject, folder, list(direct.tools)), folder) as client:
        through = await answers(client, subject, names(way, subject))
    counts = comparison(direct, through, subject, names(way, subject))
    compared = {kind: counts[kind] for kind in KINDS[way.command]}
    assert {kind: count.unequal for kind, count in compared.items() if count.unequal} == {}
    assert {kind: str(count) for kind, count in compared.items()}.items() <= documented(subject).items()


def documented(subject: Subject) -> dict[str, str]:
    """The row of a server in the table of the page."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    head, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.partition("### How faithful")[2].partition("\n### ")[0].splitlines()
        if line.startswith("|") and "---" not in line
    ]
    return next(dict(zip(head, row, strict=True)) for row in rows if row[0] == subject.name)
