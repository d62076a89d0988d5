"""`remit work run`: hand an issue to an executor, and see it through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.work.commands.staged import show_staged, staged_option

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from remit.cli.ends import End
    from remit.cli.opened import Opened
    from remit.work.views import Started


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
def command(state: State, issue: str, executor: str, role: str, detach: bool, staged: bool) -> int:
    """Hand an issue to an executor: a new run, in a git worktree of its own.

    On a terminal the program's output is shown while it works, later with `remit work log`. Ctrl-C stops the run, and
    all that the program started; `remit work switch` hands the issue to another executor. The status is 3 unless the
    result is ok.
    """
    if staged:
        return show_staged(state, "start", {"issue_ref": issue, "executor": executor, "role": role})
    from remit.work.executors.registry import MANUAL

    return see_through(
        state,
        lambda remit: remit.service.work.start(issue, executor, role=role),
        detach=detach or executor == MANUAL,
        creates=True,
    )


def see_through(
    state: State, start: Callable[[Opened], Awaitable[Started]], *, detach: bool, creates: bool = False
) -> int:
    """Start a run and work on its job, unless a worker or a person is to do it; the exit status.

    `creates`: it may be the first of this journal, which is made.
    """
    from remit.cli.working import work_on

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


def _unless_completed(state: State, ends: list[End]) -> None:
    """Print how a job was left, unless it came to a result, which is printed as the run's."""
    from remit.cli.ends import present

    if left := [end for end in ends if end.row.state != "completed"]:
        present(state, left)


def _told(state: State, started: Started) -> int:
    """Print the result of a run whose job has completed; the exit status."""
    from remit.work.commands.log import last_errors
    from remit.work.commands.show import print_run

    unit = state.ask(lambda remit: remit.service.work.view(started.issue_ref), code="unused")
    result = unit.results.get(started.run_id)

    def told(state: State, _: object) -> None:
        state.output.out.line(f"{unit.issue_ref} is {unit.state}")
        print_run(state, unit, next(run for run in unit.runs if run.run_id == started.run_id))
        if result is not None and result.status == "fail" and not state.server:
            for line in last_errors(state, unit.issue_ref, started.run_id):
                state.output.out.line(f"    | {line}")

    state.show({**msgspec.structs.asdict(started), "state": unit.state, "result": result}, told)
    return exit_codes.OK if result is not None and result.status == "ok" else exit_codes.FAILED


def tell(state: State, started: Started) -> int:
    """Print a run that is carried out elsewhere."""
    state.show(started, lambda state, started: state.output.out.line(started.run_id))
    if not started.job:
        result = state.command(
            "work", "result", started.issue_ref, started.run_id, "--status", "ok", "--commit", "HASH"
        )
        state.note(f"hand in the result: {result}")
    return exit_codes.OK
