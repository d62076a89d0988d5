"""The board of a thousand issues; and all that Remit does for a run, beside the checkout that any run needs."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import apsw

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit import Remit
from remit.parts.work.references import IssueRef
from remit.parts.work.store import WorkStore
from remit.settings import load

RUNS: Final = 5
UNITS: Final = 1_000
LOOKS: Final = 5
_WORKFLOW: Final = '[executors.empty]\nprogram = "true"\nisolation = "none"\n'
_FILES: Final = 200


async def board(lab: Lab) -> list[Result]:
    """A thousand issues, as `remit work board` asks for them."""
    flags = {"journal.url": str(lab.folder / "board.db")}
    rows = apsw.Connection(":memory:")
    rows.execute("CREATE TABLE heads (stream TEXT PRIMARY KEY, state TEXT, title TEXT, labels TEXT, at INTEGER)")
    async with Remit(settings=load(env={}, cwd=lab.folder, flags=flags), work=False) as remit:
        store = WorkStore(remit.runtime.journal)
        for number in range(UNITS):
            await store.open(IssueRef("local", number + 1), f"Issue {number}", "bench")
            rows.execute(
                "INSERT INTO heads VALUES (?, 'todo', ?, '{}', ?)", (f"work/{number}", f"Issue {number}", number)
            )

        async def sample() -> Reading:
            watch = Watch()
            for _ in range(LOOKS):
                assert len(await remit.service.work.board(limit=UNITS)) == UNITS
            return Reading(watch.micros(LOOKS).value / 1_000)

        async def floor() -> Reading:
            watch = Watch()
            for _ in range(LOOKS):
                listed = rows.execute("SELECT * FROM heads ORDER BY at DESC LIMIT ?", (UNITS,)).fetchall()
                assert len(listed) == UNITS
            return Reading(watch.micros(LOOKS).value / 1_000)

        return await against("work: board of 1,000 issues", "ms", sample, floor, "bare rows from SQLite", mark=Mark(50))


async def empty_run(lab: Lab) -> list[Result]:
    """Milliseconds of a run from its start to its comment, less those of `git worktree add` in the same repository."""

    async def sample() -> Reading:
        with tempfile.TemporaryDirectory(dir=lab.folder) as own:
            folder = _repository(Path(own) / "project")
            flags = {
                "app.principal": "bench",
                "journal.url": str(Path(own) / "journal.db"),
                "policy.rules": [{"id": "work", "effect": "allow", "tools": ["outbox.*", "executor.*"]}],
                "sandbox.folder": str(Path(own) / "sandbox"),
            }
            async with Remit(settings=load(env={}, cwd=folder, flags=flags)) as remit:
                took = [await _run(remit) for _ in range(RUNS + 1)][1:]
            added = [_add(folder, Path(own) / f"tree-{number}") for number in range(RUNS)]
            return Reading(sum(took) / RUNS - sum(added) / RUNS)

    note = "less `git worktree add` of the same repository, 200 files"
    return await against("work: run of an empty executor", "ms", sample, None, note, mark=Mark(150), rounds=3)


async def _run(remit: Remit) -> float:
    work: Any = remit.service.work
    issue = await work.issue("Nothing")
    began = time.perf_counter()
    started = await work.start(issue, "empty")
    await remit.ended(started.job)
    return (time.perf_counter() - began) * 1_000


def _repository(folder: Path) -> Path:
    folder.mkdir()
    for number in range(_FILES):
        (folder / f"{number}.txt").write_text(f"{number}\n" * 100)
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "Begin")):
        _git(folder, *words)
    (folder / "workflow.toml").write_text(_WORKFLOW)
    return folder


def _add(folder: Path, tree: Path) -> float:
    began = time.perf_counter()
    _git(folder, "worktree", "add", "--quiet", "-b", tree.name, str(tree))
    return (time.perf_counter() - began) * 1_000


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, capture_output=True)  # noqa: S603, S607 - ours
