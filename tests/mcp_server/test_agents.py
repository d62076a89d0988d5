"""Claude Code and Codex without a person: a read runs, a write is asked about, approved elsewhere, and runs once.

They are large, so they are installed and run only if that is asked for: `make agents`, REMIT_TEST_AGENTS=1.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from remit.testing.models import ModelServer
from tests.work.executors.agents import BIN, real
from tests.work.executors.wires import Script

NOTES: Final = Path("examples/mcp/notes.py").resolve()
REMIT: Final = str(Path(sys.executable).parent / "remit")
READ: Final[tuple[str, dict[str, Any]]] = ("read_note", {"topic": "tea"})
WRITE: Final[tuple[str, dict[str, Any]]] = ("write_note", {"topic": "milk", "text": "buy"})

pytestmark = [pytest.mark.slow, real]


class Place(NamedTuple):
    """A home folder of a client, the notes and the journal."""

    folder: Path

    @property
    def notes(self) -> dict[str, str]:
        text = (self.folder / "notes.json").read_text()
        notes: dict[str, str] = json.loads(text)
        return notes

    @property
    def journal(self) -> str:
        return str(self.folder / "journal.db")

    @property
    def command(self) -> list[str]:
        words = ["--journal", self.journal, "mcp", "wrap", "--name", "notes", "--level", "read_note=L0", "--"]
        return [REMIT, *words, sys.executable, str(NOTES), str(self.folder / "notes.json")]

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.folder), "LANG": "C.UTF-8"}


def claude(place: Place, url: str) -> tuple[list[str], dict[str, str]]:
    program, *args = place.command
    servers = {"notes": {"command": program, "args": args}}
    (place.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    words = ["claude", "-p", "write the note", "--strict-mcp-config", "--mcp-config", str(place.folder / "mcp.json")]
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "k3y",
        "ANTHROPIC_MODEL": "claude-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_CONNECT_TIMEOUT_MS": "60000",
    }
    return [*words, "--tools", "", "--allowedTools", "mcp__notes"], env


def codex(place: Place, url: str) -> tuple[list[str], dict[str, str]]:
    program, *args = place.command
    home = place.folder / ".codex"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f"""
approval_policy = "never"
check_for_update_on_startup = false
model = "m"
model_provider = "served"
[model_providers.served]
name = "served"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
[mcp_servers.notes]
command = {json.dumps(program)}
args = {json.dumps(args)}
required = true
default_tools_approval_mode = "approve"
"""
    )
    words = ["codex", "exec", "--json", "--skip-git-repo-check", "-s", "read-only", "write the note"]
    return words, {"OPENAI_API_KEY": "k3y", "CODEX_HOME": str(home)}


async def run(words: list[str], env: dict[str, str], folder: Path) -> str:
    """What a program says; stdin is empty."""
    process = await asyncio.create_subprocess_exec(
        *words,
        env=env,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return said.decode()


def results(server: ModelServer) -> str:
    """The results of calls in the last request to the model, as text."""
    return json.dumps(server.received[-1].body)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", [claude, codex], ids=["claude -p", "codex exec"])
async def test_a_write_is_approved_elsewhere_and_runs_exactly_once(
    agent: Callable[[Place, str], tuple[list[str], dict[str, str]]], tmp_path: Path
) -> None:
    place = Place(tmp_path)
    (tmp_path / "notes.json").write_text('{"tea": "black"}')
    calls = [[READ, WRITE], [WRITE, WRITE]]
    for number, scene in enumerate(calls):
        script = Script("ok", scene)
        async with ModelServer(script).listening() as server:
            words, env = agent(place, server.url)
            said = await run(words, {**place.env, **env}, tmp_path)
            assert script.offered, said
            assert any("notes" in name for name in script.offered[0]), "the tools were there in the first turn"
            told = results(server)
            assert "CONFIRMATION_REQUIRED" in told, said
            assert ("black" in told) is (number == 0)
            assert ("noted milk" in told) is (number == 1)
        waiting = json.loads(await run([REMIT, "--journal", place.journal, "confirm", "--json"], place.env, tmp_path))
        (question,) = waiting["questions"] if isinstance(waiting, dict) else waiting
        assert place.notes.get("milk") == (None if number == 0 else "buy")
        if number == 0:
            identifier = question["confirmation"]
            await run([REMIT, "--journal", place.journal, "confirm", identifier, "--approve"], place.env, tmp_path)
