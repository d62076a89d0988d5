"""The real agents from npm, each with a home and a repository of its own, before a scripted model on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shlex
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from remit_testing.models import ModelServer
from tests.parts.work.executors.agents import BIN
from tests.parts.work.executors.wires import Script

REMIT: Final = Path(sys.executable).with_name("remit")
LIMIT_S: Final = 90
real = pytest.mark.skipif(not os.environ.get("REMIT_TEST_AGENTS"), reason="REMIT_TEST_AGENTS=1: `make agents` first")
RULES: Final = """
[[policy.rules]]
id = "no-rm"
effect = "deny"
tools = "agent.shell"
where = '"rm" in args.programs'
reason = "deleting is forbidden"

[[policy.rules]]
id = "push"
effect = "ask"
tools = "agent.shell"
where = '"git push" in args.programs'

[[policy.rules]]
id = "rest"
effect = "allow"
tools = "agent.*"
"""


class Row(NamedTuple):
    """How one agent is run without a person."""

    args: tuple[str, ...]
    shell: str
    """Its tool that runs a command."""
    argument: str = "command"
    more: Mapping[str, str] = {}
    """What that tool wants beside."""


ROWS: Final[dict[str, Row]] = {
    "claude": Row(("-p", "go", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Write"), "Bash"),
    "codex": Row(("exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", "go"), "exec_command", "cmd"),
    "gemini": Row(("-p", "go", "-o", "stream-json", "--skip-trust", "--yolo"), "run_shell_command"),
    "opencode": Row(("run", "--format", "json", "go"), "bash", more={"description": "go"}),
    "qwen": Row(("-p", "go", "--yolo"), "run_shell_command", more={"description": "go", "is_background": ""}),
    "copilot": Row(("-p", "go", "--allow-all-tools"), "bash", more={"description": "go"}),
}


class Ran(NamedTuple):
    """The end of a run of an agent."""

    status: int
    text: str
    """Everything that it printed."""
    script: Script


class Home:
    """A home, a repository and the settings of a guard."""

    def __init__(self, place: Path, mode: str = "gate", rules: str = RULES, more: str = "") -> None:
        """Make them below a folder with a short path."""
        self.home, self.repository, self.settings = place / "h", place / "r", place / "s"
        for folder in (self.home, self.repository, self.settings):
            folder.mkdir(parents=True)
        (self.settings / "remit.toml").write_text(f'[hooks]\nmode = "{mode}"\n{more}\n{rules}')
        (self.repository / "a.txt").write_text("one\n")
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "XDG_DATA_HOME": str(place / "d"),
            "OPENCODE_CONFIG": str(self.home / "opencode.json"),
            "REMIT_TRUST": "1",
            "LANG": "C.UTF-8",
        }

    async def remit(self, *words: str, stdin: bytes = b"") -> tuple[int, str]:
        """Run the command under the guard's settings; its status and what it printed."""
        return await self._run([str(REMIT), "--config", str(self.settings / "remit.toml"), *words], self.env, stdin)

    async def connect(self, agent: str, deadline_s: int = 580) -> None:
        """Connect an agent."""
        log_in(agent, self.home)
        status, said = await self.remit("guard", "connect", agent, "--yes", "--deadline", str(deadline_s))
        assert status == 0, said

    @property
    def folder(self) -> Path:
        """The folder of the guard."""
        [folder] = (Path(self.env["XDG_DATA_HOME"]) / "remit/guard").iterdir()
        return folder

    def daemons(self) -> list[int]:
        """Return the processes of the guard."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"serve" in words and os.fsencode(self.settings / "remit.toml") in words:
                    found.append(int(process.name))
        return found

    def kill(self) -> None:
        """Kill the guard, as a machine would that loses its power."""
        for process in self.daemons():
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(process)
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                select.select([handle], [], [], LIMIT_S)
                os.close(handle)

    async def run(
        self,
        agent: str,
        commands: list[str],
        env: Mapping[str, str] | None = None,
        *,
        script: Script | None = None,
        more: tuple[str, ...] = (),
    ) -> Ran:
        """Let a scripted model have the agent run these commands, one a turn."""
        script = script or script_of(agent, commands)
        async with ModelServer(script).listening() as server:
            configure(agent, self.home, server.url)
            own = {**self.env, **env_of(agent, server.url), **(env or {})}
            status, text = await self._run([agent, *ROWS[agent].args, *more], own)
        return Ran(status, text, script)

    async def _run(self, words: list[str], env: Mapping[str, str], stdin: bytes = b"") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=self.repository,
            env=dict(env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(LIMIT_S):
                said, _ = await process.communicate(stdin)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = await process.communicate()
            said += f"\n{shlex.join(words)}: killed".encode()
        return process.returncode or 0, said.decode("utf-8", "replace")


def log_in(agent: str, home: Path) -> None:
    """Have an agent use the key in its variables, if it has to be told."""
    if agent == "gemini":
        (home / ".gemini").mkdir()
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (home / ".gemini/settings.json").write_text(json.dumps(auth))


def script_of(agent: str, commands: list[str]) -> Script:
    """Return a model that has an agent run these commands, one a turn."""
    row = ROWS[agent]
    more = {name: value or False for name, value in row.more.items()}
    return Script("hooks", [(row.shell, {row.argument: command, **more}) for command in commands])


def configure(agent: str, home: Path, url: str) -> None:
    """Tell an agent of the model, if it reads no variables."""
    if agent == "codex":
        file = home / ".codex/config.toml"
        lines = ['model = "test-1"', 'model_provider = "served"', "[model_providers.served]", 'name = "served"']
        file.parent.mkdir(exist_ok=True)
        kept = file.read_text().partition("[hooks.state")[1:] if file.exists() else ("", "")
        lines += [f'base_url = "{url}/v1"', 'wire_api = "responses"', 'env_key = "OPENAI_API_KEY"', "".join(kept)]
        file.write_text("\n".join(lines))
    if agent == "opencode":
        options = {"baseURL": f"{url}/v1", "apiKey": "k"}
        served = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {}}}
        settings = {"provider": {"served": served}, "model": "served/m", "small_model": "served/m"}
        (home / "opencode.json").write_text(json.dumps(settings))


def env_of(agent: str, url: str) -> dict[str, str]:
    """Return the variables that lead an agent to the model."""
    return {
        "claude": {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_MODEL": "claude-sonnet-4-5",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        "codex": {"OPENAI_API_KEY": "k"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "k", "GEMINI_MODEL": "gemini-2.5-pro"},
        "opencode": {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        "qwen": {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"},
        "copilot": {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "k",
            "COPILOT_MODEL": "m",
        },
    }[agent]
