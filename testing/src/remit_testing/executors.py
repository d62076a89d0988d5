"""The promises of every executor of work, as checks that any test suite can run.

    @pytest.mark.parametrize("check", EXECUTOR_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(check, tmp_path):
        await check(lambda scene: MyExecutor(...), tmp_path)

The subject gives an executor for each scene. In every scene it works in the current folder:

    edit    writes `mended` into clock.txt, and ends well
    fail    ends badly
    hang    writes `up` into the file up.txt, and never ends
    setsid  starts a process in a session of its own, whose number it writes into survivor.txt and which writes late.txt
            some minutes later; then it ends well
    leave   the same, and it never ends
    flood   writes more than 5,000,000 bytes to its output, and ends well
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

from remit.clock import SystemClock
from remit.parts.work.executors import program
from remit.parts.work.executors.port import Executor, ProgramEnding, Site, no_tools
from remit.parts.work.executors.worktree import Worktree
from remit.parts.work.order import WorkOrder
from remit.parts.work.pack import STDOUT, Contents, ContextPack
from remit.process.environment import environment
from remit_testing.suite import checks_in

Scene = Literal["edit", "fail", "hang", "setsid", "leave", "flood"]
Subject = Callable[[Scene], Executor]
Check = Callable[[Subject, Path], Awaitable[None]]
PATIENCE_S: Final = 60.0
_SHORT_S: Final = 1.0
_LOOK_S: Final = 0.02


def site_in(folder: Path, *, timeout_s: float = PATIENCE_S) -> Site:
    """Return a site below an empty folder: its worktree is a plain one."""
    tree = Worktree(folder / "repository", folder / "tree", "run/1")
    order = WorkOrder(
        issue_ref="local#1",
        run_id="2026-02-14-work-0001",
        role="work",
        repo_dir=str(tree.folder),
        spec_snapshot="The clock is broken.",
    )
    pack = ContextPack.of(folder / "work", order.issue, order.run_id)
    pack.write(order, Contents())
    home = folder / "home"
    for place in (tree.folder, home):
        place.mkdir(exist_ok=True)
    return Site(
        order=order,
        title="The clock",
        tree=tree,
        pack=pack,
        home=home,
        env={**environment(os.environ, {}), "HOME": str(home)},
        secrets=os.environ,
        timeout_s=timeout_s,
        principal="ann",
        clock=SystemClock(),
        show=lambda _stream, _data: None,
        tools=no_tools,
    )


async def check_its_work_is_left_and_its_output_is_archived(subject: Subject, folder: Path) -> None:
    """It works in the worktree, ends well, and leaves its output in the pack."""
    site = site_in(folder)
    ending = await subject("edit").work(site)
    assert (site.folder / "clock.txt").read_text() == "mended\n"
    assert ending.passed
    assert fine(ending), ending
    assert (site.pack.folder / STDOUT).is_file()
    assert ending.finished >= ending.started


async def check_a_failure_shows(subject: Subject, folder: Path) -> None:
    """A bad end is not taken for a good one."""
    ending = await subject("fail").work(site_in(folder))
    assert not (ending.passed and fine(ending)), ending


async def check_its_time_is_limited(subject: Subject, folder: Path) -> None:
    """An executor that does not end is ended, and the ending says so."""
    ending = await subject("hang").work(site_in(folder, timeout_s=_SHORT_S))
    assert ending.timed_out
    assert not ending.passed


async def check_nothing_of_it_lives_when_it_has_ended(subject: Subject, folder: Path) -> None:
    """A process in a session of its own is gone when `work` returns, and writes nothing after that."""
    site = site_in(folder)
    await subject("setsid").work(site)
    assert not survivor(site).exists()
    assert not (site.folder / "late.txt").exists()


async def check_nothing_of_it_lives_when_it_was_cancelled(subject: Subject, folder: Path) -> None:
    """Cancellation goes on only when no process is left."""
    site = site_in(folder)
    task = asyncio.create_task(subject("leave").work(site))
    async with asyncio.timeout(PATIENCE_S):
        while not (site.folder / "survivor.txt").exists():
            assert not task.done(), task
            await site.clock.sleep(_LOOK_S)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    else:
        raise AssertionError("it went on after it was cancelled")
    assert not survivor(site).exists()
    assert not (site.folder / "late.txt").exists()


async def check_output_is_capped_and_counted(subject: Subject, folder: Path) -> None:
    """Of a flood the first of it is archived, and all of it is counted."""
    site, cap = site_in(folder), program.MAX_LOG
    program.MAX_LOG = 1_000_000
    try:
        ending = await subject("flood").work(site)
    finally:
        program.MAX_LOG = cap
    assert ending.stdout_bytes > 5_000_000
    assert (site.pack.folder / STDOUT).stat().st_size < 1_100_000
    assert ending.passed
    assert fine(ending), ending


async def check_its_command_is_the_same_for_every_run(subject: Subject, folder: Path) -> None:
    """Its command names no run; the names of one are put in when it starts."""
    site = site_in(folder)
    command = subject("edit").command
    assert command
    assert command == subject("edit").command
    assert not any(site.order.run_id in word for word in command)


EXECUTOR_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())


def fine(ending: ProgramEnding) -> bool:
    """Whether an agent said that all went well; any other program says nothing."""
    turn = ending.turn
    return turn is None or (turn.terminal and not turn.fault and not turn.denied)


def survivor(site: Site) -> Path:
    """Return the place in /proc of the process that was started in a session of its own."""
    return Path("/proc", (site.folder / "survivor.txt").read_text().strip())
