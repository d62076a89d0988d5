"""`remit work run`: hand an issue to an executor, and see it through.

`remit work switch`: put another executor in the place of the active one.

`remit work stop`: stop the active run of an issue.

`remit work log`: what a run's program wrote.

`remit work late`: results that came when their run was no longer active.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Final

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean
from remit.codes import Code
from remit.errors import NotFoundError
from remit.parts.work.commands.stage import show_staged, staged_option
from remit.redact import mask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from remit.cli.access import Opened
    from remit.cli.ends import End
    from remit.parts.work.result import WorkResult
    from remit.parts.work.views import Started, UnitView


@click.command("run")
@click.argument("issue")
@click.option(
    "--executor",
    required=True,
    metavar="NAME",
    help="An [executors.NAME] of workflow.toml, a coding agent such as claude, or manual.",
)
@click.option("--role", default="work", metavar="NAME", help="The role of the run. Default: work.")
@click.option("--detach", is_flag=True, help="Print the run's id and leave it to a worker.")
@staged_option
@json_option("the result of the run")
@pass_state
def run(state: CommandState, issue: str, executor: str, role: str, detach: bool, staged: bool) -> int:
    """Hand an issue to an executor: a new run, in a git worktree of its own.

    On a terminal the program's output is shown while it works, later with `remit work log`. Ctrl-C stops the run, and
    all that the program started; `remit work switch` hands the issue to another executor. The status is 3 unless the
    result is ok.
    """
    if staged:
        return show_staged(state, "start", {"issue_ref": issue, "executor": executor, "role": role})
    from remit.parts.work.executors.registry import MANUAL

    return see_through(
        state,
        lambda remit: remit.service.work.start(issue, executor, role=role),
        detach=detach or executor == MANUAL,
        creates=True,
    )


def see_through(
    state: CommandState, start: Callable[[Opened], Awaitable[Started]], *, detach: bool, creates: bool = False
) -> int:
    """Start a run and work on its job, unless a worker or a person is to do it; the exit status.

    `creates`: it may be the first of this journal, which is made.
    """
    from remit.cli.job_worker import work_on

    begun: list[Started] = []

    async def choose(remit: Opened, _new: str = "") -> list[str]:
        take_over(remit)
        begun.append(await start(remit))
        for warning in begun[0].warnings:
            state.note(warning)
        return [begun[0].job] if begun[0].job else []

    if detach:
        state.ask(choose, writes=True, creates=creates)
        return tell(state, begun[0])

    async def leave(remit: Opened) -> None:
        if begun:
            state.note(f"stopping {begun[0].run_id}")
            await remit.service.work.stop(begun[0].issue_ref, "interrupted at the terminal")

    status = work_on(state, choose, patient=False, creates=creates, leave=leave, tell=_unless_completed)
    return _told(state, begun[0]) if status == exit_codes.OK else status


def take_over(remit: Opened) -> None:
    """Have this process end the jobs of runs that are to end, in place of processes that died; a server does so."""
    from remit.app import Remit

    if isinstance(remit, Remit):
        remit.engine.start(only=remit.awaited, keep=True)


def _unless_completed(state: CommandState, ends: list[End]) -> None:
    """Print how a job was left, unless it came to a result, which is printed as the run's."""
    from remit.cli.ends import present

    if left := [end for end in ends if end.row.state != "completed"]:
        present(state, left)


def _told(state: CommandState, started: Started) -> int:
    """Print the result of a run whose job has completed; the exit status."""
    from remit.parts.work.commands.issue import print_run

    unit = state.ask(lambda remit: remit.service.work.view(started.issue_ref), code="unused")
    result = unit.results.get(started.run_id)

    def told(state: CommandState, _: object) -> None:
        state.output.out.line(f"{unit.issue_ref} is {unit.state}")
        print_run(state, unit, next(run for run in unit.runs if run.run_id == started.run_id))
        if result is not None and result.status == "fail" and not state.server:
            for line in last_errors(state, unit.issue_ref, started.run_id):
                state.output.out.line(f"    | {line}")

    state.show({**msgspec.structs.asdict(started), "state": unit.state, "result": result}, told)
    return exit_codes.OK if result is not None and result.status == "ok" else exit_codes.FAILED


def tell(state: CommandState, started: Started) -> int:
    """Print a run that is carried out elsewhere."""
    state.show(started, lambda state, started: state.output.out.line(started.run_id))
    if not started.job:
        result = state.command(
            "work", "result", started.issue_ref, started.run_id, "--status", "ok", "--commit", "HASH"
        )
        state.note(f"hand in the result: {result}")
    return exit_codes.OK


@click.command("switch")
@click.argument("issue")
@click.option("--executor", required=True, metavar="NAME", help="Who takes over.")
@click.option("--reason", required=True, metavar="TEXT", help="Why, such as timeout or changes requested.")
@click.option("--role", default="work", metavar="NAME", help="The role of the run. Default: work.")
@click.option("--detach", is_flag=True, help="Print the run's id and leave it to a worker.")
@staged_option
@json_option("the result of the run")
@pass_state
def switch(state: CommandState, issue: str, executor: str, reason: str, role: str, detach: bool, staged: bool) -> int:
    """Fence the active run, wait until none of its processes lives, and hand the issue to another executor.

    The new run begins at what the old one committed. What the old one still sends is archived:
    `remit work show` counts it.
    """
    if staged:
        return show_staged(state, "switch", {"issue_ref": issue, "executor": executor, "reason": reason, "role": role})
    from remit.parts.work.executors.registry import MANUAL

    return see_through(
        state,
        lambda remit: remit.service.work.switch(issue, executor, reason, role=role),
        detach=detach or executor == MANUAL,
    )


@click.command("stop")
@click.argument("issue")
@click.option("--reason", default="stopped by hand", metavar="TEXT", help="Why. Default: stopped by hand.")
@staged_option
@json_option("the issue's work")
@pass_state
def stop(state: CommandState, issue: str, reason: str, staged: bool) -> int:
    """Fence the active run, and wait until none of its processes lives. What it still sends is archived."""
    if staged:
        return show_staged(state, "stop", {"issue_ref": issue, "reason": reason})
    from remit.parts.work.commands.issue import print_unit

    async def stop(remit: Opened) -> UnitView:
        take_over(remit)
        unit: UnitView = await remit.service.work.stop(issue, reason)
        return unit

    unit = state.ask(stop, writes=True)
    return state.show(unit, print_unit)


_LINES: Final = 5
_END: Final = 4_096
"""Bytes of what a program wrote in which its last lines are."""


@click.command("log")
@click.argument("issue")
@click.argument("run", required=False, default="")
@click.option("--err", is_flag=True, help="What it wrote to stderr.")
@pass_state
def log(state: CommandState, issue: str, run: str, err: bool) -> int:
    """Print what the program of a run wrote; of the newest run if none is named.

    Into a pipe or a file it goes exactly as it is; on a terminal, what would control it is shown as an escape.
    """
    from remit.parts.work.folder import WorkFolder
    from remit.parts.work.pack import STDERR, STDOUT, ContextPack
    from remit.parts.work.references import IssueRef, RunId

    runs = [one.run_id for one in state.ask(lambda remit: remit.service.work.view(issue), code="unused").runs]
    chosen = str(RunId.parse(run)) if run else next(iter(runs), "")
    pack = ContextPack.of(WorkFolder(state.settings()).path, IssueRef.parse(issue), chosen)
    log = pack.open_log(STDERR if err else STDOUT) if chosen in runs else None
    if log is None:
        reason = f"{issue} has no output of {chosen or 'any run'} on this machine"
        raise NotFoundError(reason, code=Code.WORK_NOT_FOUND, remedy="`remit work show` lists its runs.")
    out = state.output.out
    with log:
        if not out.is_terminal:
            shutil.copyfileobj(log, sys.stdout.buffer)
        for line in log if out.is_terminal else ():
            out.line(clean(line.decode(errors="backslashreplace").rstrip("\r\n")))
    return exit_codes.OK


def last_errors(state: CommandState, issue: str, run: str) -> list[str]:
    """Return the last lines that a run's program wrote to stderr on this machine, with secrets masked."""
    from remit.parts.work.folder import WorkFolder
    from remit.parts.work.pack import STDERR, ContextPack
    from remit.parts.work.references import IssueRef

    log = ContextPack.of(WorkFolder(state.settings()).path, IssueRef.parse(issue), run).open_log(STDERR)
    if log is None:
        return []
    with log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _END))
        lines = mask(log.read().decode(errors="replace")).splitlines()
    return [clean(line) for line in lines[-_LINES:]]


@click.command("late")
@click.argument("issue")
@click.argument("run", required=False, default="")
@json_option("the results")
@pass_state
def late(state: CommandState, issue: str, run: str) -> int:
    """Show the results that came when their run was no longer active.

    They are archived, and merged nowhere. `remit work result ISSUE RUN --adopt` takes the newest one of a run by hand.
    """
    return state.listing(
        state.ask(lambda remit: remit.service.work.late(issue, run), code="unused"), _print, "no result came too late"
    )


def _print(state: CommandState, results: list[WorkResult]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("RUN", "STATUS", "PR", "COMMIT", TableColumn("SUMMARY", whole=False))
    cells = [
        (result.run_id, result.status, result.changes.pr or "-", result.changes.commit or "-", result.summary)
        for result in results
    ]
    table(state.output.out, columns, cells)
