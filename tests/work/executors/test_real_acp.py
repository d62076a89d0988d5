"""Real agents by the Agent Client Protocol, each against a model on loopback; `make agents` installs them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest

from remit import Remit
from remit.settings import load
from remit.testing.models import ModelServer
from remit.work.executors.acp import KNOWN
from tests.patience import PATIENCE_S
from tests.work.executors.repository import git, make_repository
from tests.work.executors.wires import Script

pytestmark = pytest.mark.slow

BIN: Final = Path(os.environ.get("REMIT_AGENTS", "build/agents")).absolute() / "node_modules" / ".bin"
MEND: Final = "echo mended > clock.txt"
WORKFLOW: Final = """
[executors.{agent}]
agent = "{agent}"
protocol = "acp"
program = "{program}"
base_url = "{url}"
model = "{model}"
key = "AGENT_KEY"
isolation = "none"
timeout_seconds = 300

[[constraints.commands]]
args = ["grep", "-q", "mended", "clock.txt"]
"""
AGENTS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "claude": ("Bash", "claude-sonnet-4-5", {}),
    "gemini": ("run_shell_command", "gemini-2.5-flash", {}),
    "opencode": ("bash", "test-1", {"description": "mend the clock"}),
}


@pytest.mark.skipif("REMIT_TEST_AGENTS" not in os.environ, reason="REMIT_TEST_AGENTS=1 runs real agents")
@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.timeout(PATIENCE_S * 10)
async def test_an_agent_asks_and_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, effect: str
) -> None:
    program = BIN / KNOWN[agent][0]
    if not program.exists():
        pytest.skip(f"{program.name} is not installed: make agents")
    tool, model, more = AGENTS[agent]
    monkeypatch.setenv("AGENT_KEY", "k")
    script = Script("edit", [(tool, {"command": MEND, **more})])
    server = ModelServer(script)
    async with server.listening():
        folder = make_repository(tmp_path / "project")
        url = server.url if agent in {"claude", "gemini"} else f"{server.url}/v1"
        given = {"agent": agent, "program": program, "url": url, "model": model}
        (folder / "workflow.toml").write_text(WORKFLOW.format(**given))
        rules = [
            {"id": "work", "effect": "allow", "tools": ["outbox.*", "executor.*"]},
            {"id": "asks", "effect": effect, "tools": ["acp.permit"]},
        ]
        flags = {
            "app.principal": "alice",
            "journal.url": str(tmp_path / "journal.db"),
            "policy.rules": rules,
            "sandbox.folder": str(tmp_path / "sandbox"),
        }
        async with Remit(settings=load(env={}, cwd=folder, flags=flags)) as remit:
            work: Any = remit.service.work
            started = await work.start(await work.issue("Mend the clock", body="It is broken."), agent)
            await remit.ended(started.job)
            view = await work.view("local#1")
    result = view.results[started.run_id]
    if effect == "allow":
        assert result.status == "ok", result.summary
        assert "asked about" in result.summary, "it asks, and heeds a refusal"
        assert git(folder, "show", f"{result.changes.commit}:clock.txt") == "mended"
    else:
        assert (result.status, result.result_code) == ("fail", "permission_denied"), result.summary
        assert result.changes.commit == ""
