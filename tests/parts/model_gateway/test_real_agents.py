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


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_recorded_and_ends_on_its_record_as_it_did(name: str, project: Project) -> None:
    call, command = AGENTS[name]
    work = project.folder / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)  # noqa: S607 - the PATH's
    journal, config = ("--journal", str(project.folder / "j.db")), project.folder / "remit.toml"
    project.env |= {"PATH": path_with_agents(), "REMIT_CONFIG": str(config), "HOME": str(project.folder / "home")}
    (project.folder / "home").mkdir()
    folder, project.folder = project.folder, work
    keys = {f"{maker}_API_KEY": "k3y" for maker in ("OPENAI", "ANTHROPIC", "GEMINI")}
    with provider(Script("edit", [call])) as server:
        urls = {"OPENAI_BASE_URL": f"{server.url}/v1", "ANTHROPIC_BASE_URL": server.url}
        env = {**keys, **urls, "REMIT_MODELS_GOOGLE_URL": server.url}
        recorded = project.apart(*journal, "record", "--", *command, env=env)
        assert recorded.status == 0, recorded.err
        asked = len(server.received)
    assert (work / "x.txt").read_text() == "edited\n", recorded.err
    (work / "x.txt").unlink()
    replayed = project.apart(*journal, "replay", "last", "--json", "--", *command)
    report = json.loads(replayed.out[replayed.out.index('{"job"') :] if '{"job"' in replayed.out else replayed.out)
    assert (replayed.status, report["matched"], report["recorded"]) == (0, asked, asked), report
    assert (work / "x.txt").read_text() == "edited\n"
    assert report["drifts"], "the time differs"
    assert folder.exists()
