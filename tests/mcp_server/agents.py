"""Claude Code and Codex with one server behind `remit mcp wrap`, with nobody there and with a person at a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tests.cli.terminal import Terminal
from tests.parts.work.executors.agents import BIN

NOTES: Final = Path("examples/mcp/notes.py").resolve()
REMIT: Final = str(Path(sys.executable).parent / "remit")
READ: Final[tuple[str, dict[str, Any]]] = ("read_note", {"topic": "tea"})
WRITE: Final[tuple[str, dict[str, Any]]] = ("write_note", {"topic": "milk", "text": "buy"})
PROMPT: Final = "write the note"


class Place(NamedTuple):
    """A home folder of a client, the notes and the journal."""

    folder: Path

    @property
    def notes(self) -> dict[str, str]:
        text = (self.folder / "notes.json").read_text()
        notes: dict[str, str] = json.loads(text)
        return notes

    @property
    def command(self) -> list[str]:
        """Return Remit in front of the server of notes."""
        words = ["mcp", "wrap", "--name", "notes", "--level", "read_note=L0", "--"]
        return self._remit(*words, sys.executable, str(NOTES), str(self.folder / "notes.json"))

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.folder), "LANG": "C.UTF-8"}

    async def open_questions(self) -> list[str]:
        """Return the ids of the questions that wait for a person."""
        waiting = json.loads(await run(self._remit("confirm", "--json"), self.env, self.folder))
        return [question["confirmation"] for question in waiting]

    async def approve(self) -> None:
        """Approve the only open question, as a person in another terminal does."""
        (question,) = await self.open_questions()
        await run(self._remit("confirm", question, "--approve"), self.env, self.folder)

    async def record(self) -> list[dict[str, Any]]:
        """Return the steps of the only session."""
        (session,) = json.loads(await run(self._remit("sessions", "--json"), self.env, self.folder))
        trace = json.loads(await run(self._remit("trace", session["session"], "--json"), self.env, self.folder))
        steps: list[dict[str, Any]] = trace["steps"]
        return steps

    def _remit(self, *words: str) -> list[str]:
        return [REMIT, "--journal", str(self.folder / "journal.db"), *words]


class Start(NamedTuple):
    """A command, with its own variables of the environment."""

    words: list[str]
    env: dict[str, str]


class Agent(Protocol):
    """A coding agent, and the keys that a person presses in it."""

    dialog: str
    """A pattern that stands at the end of its dialog."""
    idle: str
    """One of what it shows once it takes a prompt again."""

    def headless(self, place: Place, url: str) -> Start:
        """Return its start with nobody there; `url` leads to its model."""

    def interactive(self, place: Place, url: str, *, tool_s: int = 0) -> Start:
        """Return its start at a terminal; it gives a tool up after `tool_s` seconds, if that is not 0."""

    def ready(self, screen: Terminal) -> None:
        """Wait until it takes a prompt and has the tools."""

    def approve(self, screen: Terminal) -> None:
        """Choose the first answer in the dialog that was just drawn."""


class ClaudeCode:
    """Claude Code, from npm."""

    dialog = r"Decision:\s*▸\s*not\s*set[\s\S]*?to\s*expand"
    idle = r"\?\s*for\s*shor"

    def headless(self, place: Place, url: str) -> Start:
        words = ["claude", "-p", PROMPT, *self._servers(place, {})]
        waits = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"}
        return Start(words, {**self._env(url), **waits})

    def interactive(self, place: Place, url: str, *, tool_s: int = 0) -> Start:
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": ["k3y"], "rejected": []},
            "projects": {str(place.folder): project},
        }
        (place.folder / ".claude.json").write_text(json.dumps(state))
        patience = {"REMIT_MCP_PATIENCE": str(tool_s // 2)} if tool_s else {}
        limit = {"MCP_TOOL_TIMEOUT": str(tool_s * 1_000)} if tool_s else {}
        return Start(["claude", *self._servers(place, patience)], {**self._env(url), **limit})

    def ready(self, screen: Terminal) -> None:
        screen.expect(self.idle)
        screen.enter("/mcp")
        screen.expect(r"✔\s*\w*ed\s*·\s*2\s*tools")
        screen.type("\x1b")
        screen.expect(r"dismissed")

    def approve(self, screen: Terminal) -> None:
        screen.type("\x1b[C")
        screen.expect(r"to\s*select")
        screen.type("\r")
        screen.expect(r"✔\s*Decision:\s*approve[\s\S]*?Accept")
        screen.type("\r")

    def _servers(self, place: Place, env: dict[str, str]) -> list[str]:
        program, *args = place.command
        servers = {"notes": {"command": program, "args": args, "env": env}}
        (place.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        words = ["--strict-mcp-config", "--mcp-config", str(place.folder / "mcp.json")]
        return [*words, "--tools", "", "--allowedTools", "mcp__notes"]

    def _env(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "k3y",
            "ANTHROPIC_MODEL": "claude-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }


class Codex:
    """Codex, from npm."""

    # It takes no key in the first moments of a dialog, which have passed once its mark has blinked.
    dialog = r"4\.\s*deny[\s\S]*?to\s*submit[\s\S]*?(?:[◦•]\s*){4}"
    idle = r"Worked\s*for"

    def headless(self, place: Place, url: str) -> Start:
        words = ["codex", "exec", "--json", "--skip-git-repo-check", "-s", "read-only", PROMPT]
        return Start(words, self._configured(place, url, "never"))

    def interactive(self, place: Place, url: str, *, tool_s: int = 0) -> Start:
        limit = f"tool_timeout_sec = {tool_s}\n" if tool_s else ""
        trust = f'[projects.{json.dumps(str(place.folder))}]\ntrust_level = "trusted"\n'
        return Start(["codex", "-s", "read-only"], self._configured(place, url, "on-request", limit + trust))

    def ready(self, screen: Terminal) -> None:
        screen.expect(r"Ask\s*Codex\s*to\s*do\s*anything[\s\S]*?default")

    def approve(self, screen: Terminal) -> None:
        screen.type("\r")

    def _configured(self, place: Place, url: str, approvals: str, more: str = "") -> dict[str, str]:
        """Write its configuration; return its variables."""
        program, *args = place.command
        home = place.folder / ".codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f"""
approval_policy = "{approvals}"
check_for_update_on_startup = false
disable_paste_burst = true
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
{more}"""
        )
        return {"OPENAI_API_KEY": "k3y", "CODEX_HOME": str(home)}


async def run(words: list[str], env: dict[str, str], folder: Path) -> str:
    """Return all that a program says; stdin is empty."""
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
