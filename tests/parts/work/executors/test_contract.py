"""Every executor keeps the same promises: any program, a coding agent by its command line, and one that asks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit.parts.work.executors import program
from remit.parts.work.executors.acp import AcpExecutor
from remit.parts.work.executors.cli import CliExecutor
from remit.parts.work.executors.port import Executor, ProgramEnding, Site
from remit.parts.work.executors.program import ProgramExecutor
from remit.parts.work.executors.rows import CLIS
from remit.parts.work.workflow import ExecutorTable
from remit.tools.door import DoorOutcome
from remit_testing.executors import EXECUTOR_CHECKS, Check, Scene, Subject
from tests.parts.work.executors.agents import agent_program

pytestmark = pytest.mark.slow


def any_program(folder: Path) -> Subject:
    """Return programs that know nothing of Remit."""
    fake = Path(__file__).with_name("fake_agent.py")
    return lambda scene: ProgramExecutor((sys.executable, "-I", "-S", str(fake), "aider", scene))


def agent(folder: Path) -> Subject:
    """Return an agent that has its own tools."""

    def executor(scene: Scene) -> Executor:
        table = ExecutorTable(program=agent_program(folder, "claude", scene), agent="claude", mode="free")
        return CliExecutor(CLIS["claude"], table)

    return executor


class Yes:
    """A gate that lets everything pass."""

    async def open(self, principal: str, client: str) -> str:
        return "ses_1"

    async def call(self, session: str, tool: str, args: dict[str, Any]) -> DoorOutcome:
        return DoorOutcome(ok=True)

    async def decided(self, confirmation: str) -> bool:
        return bool(confirmation)


class Answered(AcpExecutor):
    """An agent whose questions are answered."""

    async def work(self, site: Site) -> ProgramEnding:
        return await super().work(site._replace(door=Yes()))


def asking_agent(folder: Path) -> Subject:
    """Return an agent that speaks the Agent Client Protocol."""
    program = Path(__file__).with_name("acp_agent.py")
    return lambda scene: Answered("test", (sys.executable, "-I", "-S", str(program), scene))


@pytest.mark.parametrize("subject", [any_program, agent, asking_agent])
@pytest.mark.parametrize("check", EXECUTOR_CHECKS, ids=lambda check: check.__name__)
async def test_an_executor_keeps_the_contract(
    check: Check, subject: Callable[[Path], Subject], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "_GRACE_S", 0.2)
    await check(subject(tmp_path), tmp_path)
