"""The official clients as real programs against `remit mcp serve`, on stdio and over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.cli.conftest import Project
from tests.mcp_server.links import MODERN, at, text_of
from tests.patience import PATIENCE_S
from tests.peers import servers

SDK = "@modelcontextprotocol/sdk/dist/esm"
DRIVER = Path(__file__).parents[1] / "peers" / "typescript" / "drive.mjs"
HOW = pytest.mark.parametrize("how", ["stdio", "http"])


TOKEN = "token-of-a-person"
CLIENT = f"""
[[clients]]
principal = "person"
sha256 = "{sha256(TOKEN.encode()).hexdigest()}"
scopes = ["call", "decide"]
dialog = true
"""


@contextmanager
def over_http(project: Project) -> Iterator[str]:
    """`remit mcp serve --http` for a client behind whose dialogs a person sits; its URL."""
    project.configure(CLIENT)
    process = project.start("mcp", "serve", "--http", "--port", "0")
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert "Traceback" not in err
    finally:
        process.kill()
        process.communicate()


@HOW
def test_the_typescript_client_is_served(project: Project, how: str) -> None:
    note = project.folder / "note"
    note.write_text("hé", encoding="utf-8")
    sdk = str(Path(servers.module(f"{SDK}/client/index.js")).parents[1])

    def drive(*where: str) -> dict[str, Any]:
        done = subprocess.run(
            [servers.NODE22, str(DRIVER), sdk, how, *where],
            cwd=project.folder,
            env={**project.env, "NOTE": str(note), "TOKEN": TOKEN},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    if how == "http":
        with over_http(project) as url:
            told = drive(url)
    else:
        told = drive(*project.command("mcp", "serve"))
    assert told["server"] == "remit"
    assert {"note__read", "note__write", "slow__forever"} <= set(told["tools"])
    assert told["echo"]["content"] == [{"type": "text", "text": "hé"}]
    assert told["approved"]["content"] == [{"type": "text", "text": "FROM TYPESCRIPT"}]
    assert told["denied"]["isError"] is True
    assert "enough" in told["denied"]["content"][0]["text"]
    assert told["unknown"] == -32602
    assert told["cancelled"] is True
    assert told["again"] == "hé"
    assert len(told["asked"]) == 2
    assert (project.folder / "note.new").read_text(encoding="utf-8") == "from typescript"
    assert project.here("verify", "--all").status == 0


@HOW
@pytest.mark.parametrize("mode", ["legacy", MODERN, "auto"])
async def test_the_python_client_is_served(project: Project, how: str, mode: str) -> None:
    note = project.folder / "note"

    async def person(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    async def drive(connection: AbstractAsyncContextManager[Client]) -> None:
        async with connection as client:
            assert "note__write" in {tool.name for tool in (await client.list_tools()).tools}
            args = {"path": str(note), "text": "from python"}
            assert text_of(await client.call_tool("note__write", args)) == "FROM PYTHON"
            assert text_of(await client.call_tool("note__read", {"path": str(note)})) == "from python"

    given: dict[str, Any] = {"mode": mode, "elicitation_callback": person}
    if how == "http":
        with over_http(project) as url:
            await drive(at(url, token=TOKEN, **given))
    else:
        program, *words = project.command("mcp", "serve")
        started = StdioServerParameters(command=program, args=words, env=project.env, cwd=project.folder)
        await drive(Client(started, **given))
    assert project.apart("verify", "--all").status == 0
