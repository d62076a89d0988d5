"""A git repository for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from remit.clock import SystemClock
from remit.parts.work.executors.port import Site, no_tools
from remit.parts.work.executors.worktree import Worktree
from remit.parts.work.order import Constraints, WorkOrder
from remit.parts.work.pack import ContextPack
from remit.parts.work.workflow import ExecutorTable

RUN = "2026-02-14-work-0001"


def git(folder: Path, *words: str) -> str:
    """Return what git prints."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(folder: Path) -> Path:
    """Return a repository with one commit on `main`."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "clock.txt").write_text("broken\n")
    (folder / "migrations").mkdir()
    (folder / "migrations" / "1.sql").write_text("create\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def script(text: str, **given: object) -> ExecutorTable:
    """Return an executor that runs a shell script."""
    return ExecutorTable(program="sh", args=("-c", text), **given)  # type: ignore[arg-type]


def order_in(folder: Path, constraints: Constraints | None = None) -> WorkOrder:
    """Return an order to work in a folder."""
    return WorkOrder(
        issue_ref="local#1",
        run_id=RUN,
        role="work",
        repo_dir=str(folder),
        spec_snapshot="Mend the clock.",
        constraints=constraints or Constraints(),
    )


def site_in(repository: Path, folder: Path, home: Path) -> Site:
    """Return where the run of an order would work: in `folder`, with nothing of the user's."""
    order = order_in(folder)
    return Site(
        order=order,
        title="",
        tree=Worktree(repository, folder, ""),
        pack=ContextPack.of(home, order.issue, RUN),
        home=home,
        env={},
        secrets={},
        timeout_s=1,
        principal="alice",
        clock=SystemClock(),
        show=lambda _, __: None,
        tools=no_tools,
    )
