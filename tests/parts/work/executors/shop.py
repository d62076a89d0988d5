"""A project whose executor is a coding agent for tests."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from remit import Remit
from remit.journal.kinds import decode
from remit.parts.work.executors.port import AgentTurn
from remit.parts.work.result import WorkResult
from remit.settings import load
from tests.parts.work.executors.agents import agent_program
from tests.parts.work.executors.repository import make_repository
from tests.patience import PATIENCE_S

TABLE: Final = """
[executors.{name}]
agent = "{agent}"
program = "{program}"
mode = "{mode}"
isolation = "{isolation}"
key = "AGENT_KEY"
model = "m-1"
base_url = "http://127.0.0.1:9/v1"

[[constraints.commands]]
args = ["grep", "-q", "mended", "clock.txt"]
"""
SPEAKER: Final = """
[executors.test]
protocol = "acp"
program = "{program}"
args = {args}
mode = "{mode}"
isolation = "{isolation}"
{more}

[[constraints.commands]]
args = ["grep", "-q", "mended", "clock.txt"]
"""
ALLOWED: Final[list[dict[str, Any]]] = [{"id": "work", "effect": "allow", "tools": ["outbox.*", "executor.*"]}]


class Shop:
    """A repository whose executor is an agent."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = make_repository(place / "project")

    def hand_to(self, agent: str, scene: str, mode: str = "governed", isolation: str = "none", more: str = "") -> None:
        """Write a workflow.toml whose executor plays a scene."""
        path = agent_program(self.place, agent, scene)
        table = TABLE.format(name=agent, agent=agent, program=path, mode=mode, isolation=isolation)
        (self.folder / "workflow.toml").write_text(table.replace("\n[[constraints", f"{more}\n[[constraints"))

    def speak(self, scene: str, mode: str = "governed", more: str = "", version: str = "1.0") -> None:
        """Write a workflow.toml whose executor speaks the Agent Client Protocol, and plays a scene."""
        args = ["-I", str(Path(__file__).with_name("acp_agent.py")), scene, version]
        table = SPEAKER.format(program=sys.executable, args=args, mode=mode, isolation="none", more=more)
        (self.folder / "workflow.toml").write_text(table)

    def open(self, *rules: dict[str, Any]) -> Remit:
        """Return a Remit that works there."""
        flags = {
            "app.principal": "alice",
            "journal.url": str(self.place / "journal.db"),
            "policy.rules": [*ALLOWED, *rules],
            "sandbox.folder": str(self.place / "sandbox"),
        }
        return Remit(settings=load(env={}, cwd=self.folder, flags=flags))

    async def run(self, agent: str, *rules: dict[str, Any]) -> tuple[WorkResult, AgentTurn, list[Any]]:
        """Run an issue; the result, what is recorded of the turn, and the events of its session."""
        async with self.open(*rules) as remit:
            work: Any = remit.service.work
            issue = await work.issue("Mend the clock", body="It is broken.")
            started = await work.start(issue, agent)
            async with asyncio.timeout(PATIENCE_S):
                await remit.ended(started.job)
            value: Any = await remit.service.jobs.result(started.job)
            turn = AgentTurn(**{**value["turn"], "usage": AgentTurn().usage}) if value["turn"] else AgentTurn()
            events = await remit.runtime.journal.read(f"session/{turn.trace}") if turn.trace else []
            view = await work.view(issue)
            return view.results[started.run_id], turn, [decode(event.kind, event.data) for event in events]
