"""kill -9 of control planes while runs are switched in flight: one result for each run, one comment for each result."""

from __future__ import annotations

import asyncio
import collections
import logging
import multiprocessing
import os
import random
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from remit import Remit
from remit.errors import StateError
from remit.jobs.state import ENDED
from remit.parts.work.references import IssueRef
from remit.parts.work.result import Changes, Test, WorkResult
from remit.parts.work.views import UnitView
from tests.crash.work_worker import ENDS, EXECUTORS, opened, serve_until_killed, workflow
from tests.journal.storages import PostgresStorage
from tests.parts.work.executors.repository import git, make_repository

UNITS = int(os.environ.get("REMIT_TEST_WORK", "8"))
KILLS = int(os.environ.get("REMIT_TEST_KILLS", "2"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 + 15 * UNITS)]
_STANDING = {"review", "blocked", "needs-human", "done"}
_AT_ONCE = 3


class Battery:
    """Issues, the processes that work on them, and what happens to both."""

    def __init__(self, url: str, folder: Path, remit: Remit, planes: int) -> None:
        self.url = url
        self.folder = folder
        self.remit = remit
        self.work: Any = remit.service.work
        self.chance = random.Random(25)
        self.issues: dict[str, str] = {}
        """The executor of each issue."""
        self.switched: dict[str, str] = {}
        """The run that was switched, by issue."""
        self.late = 0
        self.kills = 0
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.crash.work_worker", "remit.app"])
        self._planes: list[BaseProcess] = [self._plane() for _ in range(planes)]
        self._tasks: set[asyncio.Task[None]] = set()

    def _plane(self) -> BaseProcess:
        plane = self._context.Process(target=serve_until_killed, args=(self.url, str(self.folder)))
        plane.start()
        return plane

    def end(self) -> None:
        """Kill what is left."""
        for plane in self._planes:
            plane.kill()
            plane.join()

    async def go(self) -> None:
        """Kill and switch until every issue stands still."""
        names = list(EXECUTORS)
        for number in range(UNITS):
            name = names[number % len(names)]
            self.issues[await self.work.issue(f"{name} {number}", labels=(f"ex:{name}",))] = name
        chosen = {issue for place, issue in enumerate(self.issues) if (place // len(names) + place) % 2 == 0}
        while not await self.is_over():
            await self.remit.clock.sleep(self.chance.uniform(0.1, 0.5))
            if self.kills < KILLS and any(row.run_id for row in await self.work.board(limit=1_000)):
                place = self.chance.randrange(len(self._planes))
                self._planes[place].kill()
                self._planes[place].join()
                self._planes[place] = self._plane()
                self.kills += 1
            for row in await self.work.board(states=("doing",), limit=1_000):
                if row.run_id and row.issue_ref in chosen - self.switched.keys() and len(self._tasks) < _AT_ONCE:
                    self.switched[row.issue_ref] = row.run_id
                    task = asyncio.create_task(self.switch(row.issue_ref, row.run_id))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def switch(self, issue: str, run: str) -> None:
        """Switch a run in flight, and send its result late."""
        try:
            await self.work.switch(issue, "commit", "battery")
        except StateError:  # no process lived long enough to end the old one: the control plane starts the new one
            assert (await self.work.view(issue)).runs[0].reason == "battery"
        result = WorkResult(
            issue_ref=issue,
            run_id=run,
            status="ok",
            summary="I am late.",
            changes=Changes(commit="0" * 40),
            tests=(Test(result="n/a"),),
        )
        assert not (await self.work.result(result)).accepted
        self.late += 1

    async def is_over(self) -> bool:
        """Return whether nothing is under way, and nothing is left to be written."""
        rows = await self.work.board(limit=1_000)
        if self._tasks or any(row.state not in _STANDING or row.run_id or row.unwritten for row in rows):
            for task in [task for task in self._tasks if task.done()]:
                await task
            return False
        jobs = await self.remit.service.jobs.rows(limit=1_000)
        return len(rows) == UNITS and all(job.state in ENDED for job in jobs)

    async def check(self) -> None:
        """Every promise, of every issue."""
        journal = self.remit.runtime.journal
        archived = 0
        for issue, executor in self.issues.items():
            view: UnitView = await self.work.view(issue)
            ends = ENDS[executor] | ({"review"} if issue in self.switched else set())
            # A run that was killed with its control plane fails; three of those block an issue.
            assert view.state in ends | {"blocked"}, (issue, executor, view)
            assert view.unwritten == []
            assert {run.standing for run in view.runs} <= {"accepted", "refused", "stopped"}
            assert (view.runs[0].run_id in view.results) == (view.runs[0].standing == "accepted")
            assert {run.run_id for run in view.runs if run.standing == "accepted"} == {*view.results}
            assert {trigger for trigger in view.written if trigger.startswith("workrun:")} == {
                f"workrun:{run}" for run in view.results
            }
            written = collections.Counter(
                event.data.decode().split('"trigger":"')[1].split('"')[0]
                for event in await journal.read(f"issue/{IssueRef.parse(issue).number}")
                if event.kind == "issue_commented"
            )
            assert written == dict.fromkeys(view.written, 1), issue
            archived += sum(run.late for run in view.runs)
            if issue in self.switched:
                old = next(run for run in view.runs if run.run_id == self.switched[issue])
                assert old.run_id not in view.results or old.standing == "accepted"
        assert archived >= self.late == len(self.switched)
        assert (await self.remit.service.streams.verify()).problems == ()


async def survive(url: str, place: Path, planes: int) -> None:
    """Put control planes through it."""
    folder, witness = make_repository(place / "project"), place / "witness"
    (folder / "workflow.toml").write_text(workflow(witness))
    async with opened(url, folder, work=False) as remit:
        battery = Battery(url, folder, remit, planes)
        try:
            async with asyncio.timeout(60 + 15 * UNITS):
                await battery.go()
            await battery.check()
        finally:
            battery.end()
        said = f"{UNITS} units, {battery.kills} kills, {len(battery.switched)} switched, {battery.late} late"
        logging.getLogger("remit.battery").warning("%s", said)
    assert battery.kills == KILLS
    assert not witness.exists(), "a process outlived its run"
    assert [process for process in _commands() if str(place) in process and "sh -c" in process] == []
    assert git(folder, "status", "--porcelain", "--untracked-files=no") == ""


def _commands() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


async def test_killed_control_planes_lose_nothing_and_write_nothing_twice(tmp_path: Path) -> None:
    await survive(str(tmp_path / "journal.db"), tmp_path, 1)


@pytest.mark.skipif("REMIT_TEST_WORK" not in os.environ, reason="REMIT_TEST_WORK is not set: the number of issues")
async def test_the_same_with_three_control_planes_on_postgresql(tmp_path: Path, storage: PostgresStorage) -> None:
    await survive(storage.url, tmp_path, 3)
