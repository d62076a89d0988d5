"""A Remit in a repository of its own, with executors that mend, hang, and leave nothing of use."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from remit import Remit
from remit.parts.work.views import Started, UnitView
from remit.settings import load
from tests.parts.work.executors.repository import make_repository
from tests.patience import PATIENCE_S

WORKFLOW: Final = """
[executors.mend]
program = "sh"
args = ["-c", "echo mended > clock.txt"]
isolation = "ISOLATION"

[executors.manual]
program = "manual"
isolation = "ISOLATION"

[executors.hang]
program = "sh"
args = ["-c", "echo half > clock.txt; setsid sleep 86400 & echo $! > FIFO; sleep 86400"]
isolation = "none"

[executors.agent]
protocol = "acp"
program = "PYTHON"
args = ["-I", "AGENT", "edit"]
isolation = "none"

[executors.leave]
program = "sh"
args = ["-c", "echo mended > clock.txt; sed s/@RUN@/$REMIT_RUN_ID/ HERE/leave.txt > {pack}/work_result.txt"]
isolation = "none"

[executors.silent]
program = "sh"
args = ["-c", "echo hello > {pack}/work_result.txt"]
isolation = "none"

[constraints]
forbidden_paths = ["migrations/**"]

[[constraints.commands]]
args = ["grep", "-q", "mended", "clock.txt"]
"""
ALLOWED: Final = [{"id": "work", "effect": "allow", "tools": ["outbox.*", "executor.*"]}]


class Project:
    """A repository with a workflow, and a Remit that works there."""

    def __init__(self, folder: Path, remit: Remit) -> None:
        self.folder = folder
        self.remit = remit
        self.fifo = folder.with_name("up")
        self.work: Any = remit.service.work

    async def ended(self, started: Started) -> UnitView:
        """Wait for the end of a run's job; the issue after it."""
        async with asyncio.timeout(PATIENCE_S):
            await self.remit.ended(started.job)
        view: UnitView = await self.work.view(started.issue_ref)
        return view

    async def comments(self, issue: str) -> list[str]:
        """Return the comments of an issue."""
        events = await self.remit.runtime.journal.read(f"issue/{issue.partition('#')[2]}")
        return [event.data.decode() for event in events if event.kind == "issue_commented"]

    async def survivor(self) -> Path:
        """Wait until a program that hangs has started another; the place of that one in /proc."""
        async with asyncio.timeout(PATIENCE_S):
            return Path("/proc", (await asyncio.to_thread(self.fifo.read_text)).strip())


@pytest.fixture
def isolation() -> str:
    return "none"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
async def project(place: Path, isolation: str) -> AsyncIterator[Project]:
    folder = make_repository(place / "project")
    os.mkfifo(place / "up")
    names = {
        "ISOLATION": isolation,
        "FIFO": str(place / "up"),
        "HERE": str(folder),
        "PYTHON": sys.executable,
        "AGENT": str(Path(__file__).with_name("executors") / "acp_agent.py"),
    }
    text = WORKFLOW
    for name, value in names.items():
        text = text.replace(name, value)
    (folder / "workflow.toml").write_text(text)
    flags = {
        "app.principal": "alice",
        "journal.url": str(place / "journal.db"),
        "policy.rules": ALLOWED,
        "sandbox.folder": str(place / "sandbox"),
    }
    async with Remit(settings=load(env={}, cwd=folder, flags=flags)) as remit:
        yield Project(folder, remit)
