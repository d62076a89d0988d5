"""The real agents are recorded as docs/record.md says, and end on the record as they did, without a provider.

They are large, so they are installed and run only if that is asked for: `make agents`, REMIT_TEST_AGENTS=1.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any, Final

import pytest

from tests.cli.conftest import Project, project
from tests.parts.model_gateway.test_record import provider
from tests.parts.work.executors.agents import path_with_agents, real
from tests.parts.work.executors.wires import Script

__all__ = ["project"]
pytestmark = [pytest.mark.slow, real, pytest.mark.timeout(400)]
COMMAND: Final = "echo edited > x.txt; date"
AGENTS: Final[dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, ...]]]] = {
    "claude": (
        ("Bash", {"command": COMMAND, "description": "edit"}),
        (*("claude", "-p", "edit", "--output-format", "json", "--allowedTools", "Bash"), "--strict-mcp-config"),
    ),
    "codex": (
        ("exec_command", {"cmd": COMMAND}),
        ("codex", "exec", "--json", "--skip-git-repo-check", "-m", "gpt-5", "-s", "danger-full-access", "edit"),
    ),
    "gemini": (
        ("run_shell_command", {"command": COMMAND}),
        ("gemini", "-p", "edit", "-o", "json", "--skip-trust", "--yolo", "-m", "gemini-2.5-flash"),
    ),
    "opencode": (
        ("bash", {"command": COMMAND, "description": "edit"}),
        ("opencode", "run", "--format", "json", "-m", "openai/gpt-4o", "edit"),
    ),
}


OWN: Final = ("--allowedTools", "Bash", "--strict-mcp-config", "-s", "danger-full-access")
"""Words about tools of their own."""
KEYS: Final = {f"{maker}_API_KEY": "k3y" for maker in ("OPENAI", "ANTHROPIC", "GEMINI")}


class Desk:
    """A repository in which an agent is recorded and replayed, and a provider that plays a script."""

    def __init__(self, project: Project) -> None:
        self.project, self.work = project, project.folder / "work"
        self.journal = ("--journal", str(project.folder / "j.db"))
        home, config = project.folder / "home", project.folder / "remit.toml"
        for folder in (home, self.work):
            folder.mkdir()
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)  # noqa: S607 - the PATH's
        project.env |= {"PATH": path_with_agents(), "REMIT_CONFIG": str(config), "HOME": str(home)}
        project.folder = self.work

    def record(self, script: Script, *words: str) -> int:
        """Record a program to its good end; the number of its questions."""
        with provider(script) as server:
            urls = {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_BASE_URL": server.url}
            env = {**KEYS, **urls, "REMIT_MODELS_GOOGLE_URL": server.url}
            recorded = self.project.apart(*self.journal, "record", *words, env=env)
            assert recorded.status == 0, recorded.err
            return len(server.received)

    def replay(self, *words: str) -> dict[str, Any]:
        """Replay the newest job to a good end; the report."""
        replayed = self.project.apart(*self.journal, "replay", "last", "--json", *words)
        report: dict[str, Any] = json.loads(replayed.out[max(0, replayed.out.find('{"job"')) :])
        assert replayed.status == 0, report
        return report


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_recorded_and_ends_on_its_record_as_it_did(name: str, project: Project) -> None:
    (call, command), desk = AGENTS[name], Desk(project)
    asked = desk.record(Script("edit", [call]), "--", *command)
    assert (desk.work / "x.txt").read_text() == "edited\n"
    (desk.work / "x.txt").unlink()
    report = desk.replay("--", *command)
    assert (report["matched"], report["recorded"]) == (asked, asked), report
    assert (desk.work / "x.txt").read_text() == "edited\n"
    assert report["drifts"], "the time differs"


@pytest.mark.parametrize("name", AGENTS)
def test_a_governed_agent_is_told_again_what_its_tool_said(name: str, project: Project) -> None:
    """Without a call where that is asked for, and with what it says today otherwise."""
    note = project.folder / "note.txt"
    desk = Desk(project)
    note.write_text("as it was")
    command = [word for word in AGENTS[name][1] if word not in OWN]
    asked = desk.record(Script("edit", [("fs__read", {"path": "note.txt"})]), "--governed", "--", *command)
    note.write_text("as it is")
    report = desk.replay("--results", "governed", "--", *command)
    assert (report["matched"], report["recorded"], report["drifts"]) == (asked, asked, []), report
    (drift,) = desk.replay("--", *command)["drifts"]
    assert ("as it was" in drift["recorded"], "as it is" in drift["now"]) == (True, True), drift
