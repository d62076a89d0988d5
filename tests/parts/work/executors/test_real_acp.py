"""Real agents by the Agent Client Protocol, each against a model on loopback; `make agents` installs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from remit import Remit
from remit.parts.work.executors.acp import KNOWN, UNGOVERNED
from remit.parts.work.result import WorkResult
from remit.settings import load
from remit_testing.models import ModelServer
from tests.parts.work.executors.agents import BIN, real
from tests.parts.work.executors.repository import git, make_repository
from tests.parts.work.executors.wires import Script
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.slow, real]

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
{more}

[[constraints.commands]]
args = ["grep", "-q", "mended", "clock.txt"]
"""
AGENTS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "claude": ("Bash", "claude-sonnet-4-5", {}),
    "gemini": ("run_shell_command", "gemini-2.5-flash", {}),
    "opencode": ("bash", "test-1", {"description": "mend the clock"}),
}


class Project:
    """A repository on which a real agent works."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, agent: str) -> None:
        self.program = BIN / KNOWN[agent][0]
        if not self.program.exists():
            pytest.skip(f"{self.program.name} is not installed: make agents")
        monkeypatch.setenv("AGENT_KEY", "k")
        self.agent = agent
        self.place = place
        self.folder = make_repository(place / "project")

    async def run(
        self, calls: list[tuple[str, dict[str, Any]]], effect: str, more: str = ""
    ) -> tuple[WorkResult, list[list[str]]]:
        """Run an issue on a model that makes these calls; return the result, and the tools that the model had."""
        script = Script("edit", calls)
        server = ModelServer(script)
        async with server.listening():
            url = server.url if self.agent in {"claude", "gemini"} else f"{server.url}/v1"
            model = AGENTS[self.agent][1]
            given = {"agent": self.agent, "program": self.program, "url": url, "model": model, "more": more}
            (self.folder / "workflow.toml").write_text(WORKFLOW.format(**given))
            rules = [
                {"id": "work", "effect": "allow", "tools": ["outbox.*", "executor.*"]},
                {"id": "asks", "effect": effect, "tools": ["acp.permit"]},
            ]
            flags = {
                "app.principal": "alice",
                "journal.url": str(self.place / "journal.db"),
                "policy.rules": rules,
                "sandbox.folder": str(self.place / "sandbox"),
            }
            async with Remit(settings=load(env={}, cwd=self.folder, flags=flags)) as remit:
                work: Any = remit.service.work
                started = await work.start(await work.issue("Mend the clock", body="It is broken."), self.agent)
                await remit.ended(started.job)
                view = await work.view("local#1")
        return view.results[started.run_id], script.offered


@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.timeout(PATIENCE_S * 10)
async def test_an_agent_asks_and_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, effect: str
) -> None:
    tool, _, more = AGENTS[agent]
    project = Project(tmp_path, monkeypatch, agent)
    result, _ = await project.run([(tool, {"command": MEND, **more})], effect)
    if effect == "allow":
        assert result.status == "ok", result.summary
        assert "asked about" in result.summary, "it asks, and heeds a refusal"
        assert git(project.folder, "show", f"{result.changes.commit}:clock.txt") == "mended"
    else:
        assert (result.status, result.result_code) == ("fail", "permission_denied"), result.summary
        assert result.changes.commit == ""


@pytest.mark.parametrize("agent", sorted(AGENTS.keys() - UNGOVERNED.keys()))
@pytest.mark.timeout(PATIENCE_S * 10)
async def test_an_agent_is_governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str) -> None:
    project = Project(tmp_path, monkeypatch, agent)
    edit = ("fs__write", {"path": "clock.txt", "content": "mended\n"})
    result, offered = await project.run([edit], "allow", 'mode = "governed"')
    assert result.status == "ok", result.summary
    assert "each passed the gate" in result.summary
    assert git(project.folder, "show", f"{result.changes.commit}:clock.txt") == "mended"
    own = {name for names in offered for name in names if "fs__" not in name and "worktree__" not in name}
    assert own == set(), own
