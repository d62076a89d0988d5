"""The table of outcomes in docs/work.md: what each agent makes of each scene, and what Remit makes of that.

    python -m tests.parts.work.executors.outcomes

runs the real agents, which `make agents` installs, against a model on loopback, and writes the table. Tests hold it
twice: in every run by what an agent of a few lines says, with REMIT_TEST_AGENTS=1 by real agents.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from remit import Remit
from remit.parts.work.result import WorkResult
from remit.settings import load
from remit_testing.models import Canned, ModelServer, Received, Streamed
from tests.parts.work.executors.agents import path_with_agents
from tests.parts.work.executors.repository import git, make_repository
from tests.parts.work.executors.wires import Script

AGENTS: Final = ("claude", "codex", "gemini", "opencode", "aider")
PAGE: Final = Path("docs/work.md")
_EXEC: Final = "worktree__exec"
_EDIT: Final = ("fs__write", {"path": "clock.txt", "content": "mended\n"})
_BLOCK: Final = "clock.txt\n```\nmended\n```\n"
"""An edit, as aider has models write it."""
_LATE: Final = "echo mended > clock.txt; setsid sh -c 'sleep 3 && echo late > late.txt' >/dev/null 2>&1 </dev/null &"
_SHELLS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "claude": ("Bash", {"command": _LATE}),
    "codex": ("exec_command", {"cmd": _LATE}),
    "gemini": ("run_shell_command", {"command": _LATE}),
    "opencode": ("bash", {"command": _LATE, "description": "mend the clock"}),
}


class SceneRow(NamedTuple):
    """A row of the table."""

    about: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """What the model calls; empty: for a free agent its own shell, if the scene is not governed."""
    governed: bool = True
    timeout_s: int = 100
    answer: str = "All is done."
    """The answer of a model that is offered no tools."""
    tools: bool = False
    """Whether it takes an agent whose model calls tools."""


SCENES: Final[dict[str, SceneRow]] = {
    "edit": SceneRow(
        "The model edits a file, and runs a program",
        (_EDIT, (_EXEC, {"command": ["true"], "timeout_seconds": 60})),
        answer=_BLOCK,
    ),
    "lie": SceneRow("It says that all is done, and did nothing"),
    "denied": SceneRow(
        "A call is denied, then it edits",
        ((_EXEC, {"command": ["true"], "timeout_seconds": 7}), _EDIT),
        tools=True,
    ),
    "cut": SceneRow("Its stream is cut, each time", (_EDIT,), timeout_s=60, answer=_BLOCK),
    "401": SceneRow("The key is wrong", timeout_s=60),
    "500": SceneRow("Each request ends with 500", timeout_s=60),
    "hang": SceneRow("The model does not answer", timeout_s=40),
    "sleep": SceneRow(
        "A tool sleeps for longer than the run may take",
        ((_EXEC, {"command": ["sleep", "86400"], "timeout_seconds": 3600}),),
        timeout_s=40,
        tools=True,
    ),
    "setsid": SceneRow("Free: a tool leaves a process in a session of its own", governed=False, tools=True),
}
DENIED: Final = {"id": "no", "effect": "deny", "tools": ["worktree.exec"], "where": "args.timeout_seconds == 7"}
_WORKFLOW: Final = """
[executors.{agent}]
agent = "{agent}"
mode = "{mode}"
base_url = "{url}"
model = "{model}"
key = "AGENT_KEY"
isolation = "none"
timeout_seconds = {timeout_s}

[[constraints.commands]]
args = ["grep", "-q", "mended", "clock.txt"]
"""
_MODELS: Final = {"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro"}


CASES: Final = [
    (scene, agent) for scene, row in SCENES.items() for agent in AGENTS if not row.tools or agent != "aider"
]
"""The cells of the table: a model of aider's is offered no tools."""
NONE: Final = "-"


def cell(result: WorkResult) -> str:
    """Return a result as the table has it."""
    return f"{result.status} `{result.result_code}`" if result.result_code else result.status


async def outcome(agent: str, scene: str, place: Path) -> tuple[WorkResult, Script]:
    """Run a real agent, which is on the path, with its key in AGENT_KEY; the result, and what the model was asked."""
    row = SCENES[scene]
    script = Script(scene, list(row.calls) or ([_SHELLS[agent]] if not row.governed else []), row.answer)
    results = await run_all(agent, [script], place, governed=row.governed, timeout_s=row.timeout_s)
    return results[0], script


async def run_all(
    agent: str,
    scripts: list[Script],
    place: Path,
    *,
    governed: bool = True,
    timeout_s: int = 100,
    brings: Mapping[str, str] = MappingProxyType({}),
) -> list[WorkResult]:
    """Run an agent on an issue once for each model, one after another; the results. The repository `brings` files."""
    turn: list[Script] = []

    def answer(request: Received) -> Streamed | Canned:
        return turn[-1](request)

    server = ModelServer(answer)
    async with server.listening():
        folder = make_repository(place / "project")
        for name, text in brings.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "Configure")
        url = server.url if agent in {"claude", "gemini"} else f"{server.url}/v1"
        given = {"agent": agent, "url": url, "model": _MODELS.get(agent, "test-1"), "timeout_s": timeout_s}
        mode = "governed" if governed and agent != "aider" else "free"
        (folder / "workflow.toml").write_text(_WORKFLOW.format(mode=mode, **given))
        flags = {
            "app.principal": "alice",
            "journal.url": str(place / "journal.db"),
            "policy.rules": [{"id": "work", "effect": "allow", "tools": ["outbox.*", "executor.*"]}, DENIED],
            "sandbox.folder": str(place / "sandbox"),
        }
        results = []
        async with Remit(settings=load(env={}, cwd=folder, flags=flags)) as remit:
            work: Any = remit.service.work
            issue = await work.issue("Mend the clock", body="It is broken.")
            for script in scripts:
                turn.append(script)
                started = await work.start(issue, agent)
                await remit.ended(started.job)
                results.append((await work.view(issue)).results[started.run_id])
    return results


def table(cells: dict[tuple[str, str], str]) -> str:
    """Return the table as Markdown."""
    head = f"| | {' | '.join(AGENTS)} |\n|---|{'---|' * len(AGENTS)}\n"
    rows = [
        f"| {row.about} | {' | '.join(cells.get((name, agent), NONE) for agent in AGENTS)} |"
        for name, row in SCENES.items()
    ]
    return head + "\n".join(rows) + "\n"


def written() -> dict[tuple[str, str], str]:
    """Return the cells of the table that stands in the page, by scene and agent."""
    rows = [re.split(r" \| ", line.strip("| \n")) for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = {row[0]: row[1:] for row in rows}
    return {(name, agent): cells[SCENES[name].about][AGENTS.index(agent)] for name, agent in CASES}


async def _measure() -> dict[tuple[str, str], str]:
    cells = {}
    for scene, agent in CASES:
        with tempfile.TemporaryDirectory(prefix="remit-agents-") as place:
            result, script = await outcome(agent, scene, Path(place))
        cells[scene, agent] = cell(result)
        offered = sorted({name for names in script.offered for name in names})
        sys.stderr.write(f"{scene} {agent}: {cell(result)}: {result.summary[:100]} {offered[:3]}\n")
    return cells


def main() -> None:
    """Measure, and write the table."""
    os.environ["PATH"] = path_with_agents()
    os.environ["AGENT_KEY"] = "k3y"
    new = table(asyncio.run(_measure()))
    text = PAGE.read_text()
    begin, end = text.index("| | claude |"), text.index("\n\n", text.index("| | claude |"))
    PAGE.write_text(text[:begin] + new.rstrip("\n") + text[end:])


if __name__ == "__main__":
    main()
