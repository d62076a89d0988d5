"""Commands on runs: run, switch, stop, result, serve, log, late."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, one_line
from remit.cli.values import usage_error
from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.parts.work.commands.issue import asking, print_staged, show_staged, staged_option
from remit.redact import mask

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from remit.cli.access import Opened
    from remit.cli.ends import End
    from remit.cli.runner import SignalStop
    from remit.parts.work.result import WorkResult
    from remit.parts.work.stage import StagedWrite, Verb
    from remit.parts.work.store import Verdict
    from remit.parts.work.views import Started, Turn, TurnStep, UnitView


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
    from remit.parts.work.unit import MANUAL

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

    if incomplete := [end for end in ends if end.row.state != "completed"]:
        present(state, incomplete)


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
    from remit.parts.work.unit import MANUAL

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

    runs = [record.run_id for record in state.ask(lambda remit: remit.service.work.view(issue), code="unused").runs]
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


@click.command("result")
@click.argument("issue")
@click.argument("run", required=False, default="")
@click.option("--status", type=click.Choice(["ok", "fail", "blocked"]), help="Default with --pr or --commit: ok.")
@click.option("--pr", default="", metavar="URL", help="The pull request.")
@click.option("--commit", default="", metavar="HASH", help="The commit, or its URL.")
@click.option("--tests", multiple=True, metavar="TEXT", help="Such as `make test => pass`; repeatable.")
@click.option("--summary", default="", metavar="TEXT", help="One sentence.")
@click.option("--blocked-by", multiple=True, metavar="REF", help="What blocks it; repeatable.")
@click.option(
    "--file", metavar="FILE", type=click.Path(path_type=Path), help="The result: *.json, .pb, .textproto, .txt."
)
@click.option("--adopt", is_flag=True, help="Take it although its run is no longer active; alone: the newest late one.")
@staged_option
@json_option("what Remit did with the result")
@pass_state
def hand_in(
    state: CommandState,
    issue: str,
    run: str,
    status: str | None,
    pr: str,
    commit: str,
    tests: tuple[str, ...],
    summary: str,
    blocked_by: tuple[str, ...],
    file: Path | None,
    adopt: bool,
    staged: bool,
) -> int:
    """Hand in the result of a run that a person did, or adopt one that was archived.

    RUN is the active one unless you name another, whose result is archived. An issue without a pull request or a commit
    is blocked, and not put up for review.
    """
    from remit.parts.work.envelope import said_by_hand
    from remit.parts.work.forms import form_of

    status = status or ("ok" if pr or commit else None)
    if (status is not None and file is not None) or not (status or file or adopt):
        remedy = "Give --pr or --commit, --status, --file, or --adopt for a result that was archived."
        raise UsageError("it is not clear which result is meant", remedy=remedy)

    async def hand_in(remit: Opened) -> Verdict | list[StagedWrite]:
        work = remit.service.work
        chosen = run or await _active(remit, issue, newest=adopt)
        if file is None and status is None:
            return await passed("result", work, {"result": await _newest_late(remit, issue, chosen), "adopt": True})
        form = form_of(file.name) if file is not None else "txt"
        document = (
            _document(file)
            if file is not None
            else said_by_hand(issue, chosen, str(status), pr, commit, tests, summary, blocked_by)
        )
        fields = {"issue_ref": issue, "run_id": chosen, "document": document, "form": form, "adopt": adopt}
        return await passed("submit", work, fields)

    async def passed(verb: Verb, work: Any, fields: dict[str, Any]) -> Verdict | list[StagedWrite]:
        done = work.staged(verb, msgspec.to_builtins(fields)) if staged else getattr(work, verb)(**fields)
        verdict: Verdict | list[StagedWrite] = await done
        return verdict

    verdict = state.ask(asking(state, hand_in), writes=not staged)
    if isinstance(verdict, list):
        return print_staged(state, verdict)
    became = "accepted" if verdict.accepted else f"archived ({verdict.code})"
    state.show(verdict, lambda state, _: state.output.out.line(f"{became}; {issue} is {verdict.state}"))
    return exit_codes.OK if verdict.accepted else exit_codes.FAILED


def _document(file: Path) -> bytes:
    from remit.parts.work.document import MAX_DOCUMENT

    with usage_error(f"--file {file}", "Name a file."), file.open("rb") as opened:
        return opened.read(MAX_DOCUMENT + 1)


async def _active(remit: Opened, issue: str, *, newest: bool) -> str:
    """Return the run that is meant if none is named: the active one; to adopt, else the newest."""
    unit = await remit.service.work.view(issue)
    run: str = unit.active or (unit.runs[0].run_id if newest and unit.runs else "")
    if not run:
        remedy = "Name a run of `remit work show`, and --adopt to take its result."
        raise NotFoundError(f"no run of {issue} is active", code=Code.WORK_NOT_FOUND, remedy=remedy)
    return run


async def _newest_late(remit: Opened, issue: str, run: str) -> WorkResult:

    late: list[WorkResult] = await remit.service.work.late(issue, run)
    if not late:
        raise NotFoundError(f"no result of {run} came too late", code=Code.WORK_NOT_FOUND)
    return late[-1]


_EVERY_S: Final = 2.0
"""A server is asked for a turn so often."""


@click.command("serve")
@click.option("--once", is_flag=True, help="Stop when no run is under way and nothing is left to do.")
@click.option("--staged", is_flag=True, help="Say what would be done now, and do nothing.")
@json_option("each turn that did something, one a line")
@pass_state
def serve(state: CommandState, once: bool, staged: bool) -> int:
    """Hand out the issues of every group in workflow.toml, and work on their runs until Ctrl-C.

    Issues that carry a group's labels are claimed, most urgent first, so many at once as the group allows; those that
    wait for others are blocked and unblocked; labels and comments are written. One process at a time is the control
    plane; others stand by, and work on runs. Ctrl-C lets calls under way end. With --server the server does all of it.
    The status is 3 if a step of the last turn failed.
    """
    from remit.cli.runner import run_async

    turns = _Turns(state)

    async def there(stop: SignalStop) -> None:
        async with state.open(code="unused") as remit:
            while not stop.requested.is_set():
                turn: Turn = await remit.service.work.turn(staged=staged)
                turns.tell(turn)
                if staged or (once and turns.idle):
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY_S):
                        await stop.requested.wait()

    async def here(stop: SignalStop) -> None:
        from remit.cli.services import beside, keep_engine, keep_part
        from remit.parts.work.control import control_of

        async with state.remit(creates=not staged) as remit:
            if staged:
                turns.tell(await remit.service.work.turn(staged=True))
                return
            engine = remit.engine
            stop.hurry = engine.stop
            engine.start(role="work")

            def tell(turn: Turn) -> None:
                turns.tell(turn)
                if once and turns.idle:
                    stop.requested.set()

            control = control_of(remit, stop.requested, tell)
            async with remit.sending(), beside(keep_engine(remit), *([] if once else [keep_part(remit, control)])):
                await (control.run(lambda _: None) if once else stop.requested.wait())  # once: what fails ends it
                await engine.drain(remit.settings.jobs.drain_seconds)

    run_async(there if state.server else here, gentle=True)
    return exit_codes.FAILED if turns.failed else exit_codes.OK


class _Turns:
    """Prints turns, and knows whether the last one left anything to do."""

    def __init__(self, state: CommandState) -> None:
        self._state = state
        self.idle = False
        self.failed = False
        """Whether a step of the last turn that had any could not be taken."""

    def tell(self, turn: Turn) -> None:
        """Print what a turn did."""
        self.idle = not turn.active and not turn.steps
        if turn.steps:
            self.failed = any(step.error for step in turn.steps)
        if not turn.leads:
            self._state.note("another process is the control plane")
        elif turn.steps and self._state.as_json:
            self._state.output.json(turn)
        for step in turn.steps if not self._state.as_json else ():
            self._state.output.out.line(_words(step))
        self._state.output.out.flush()  # who reads a pipe sees a turn as it is taken


def _words(step: TurnStep) -> str:

    text = f"{step.action} {step.issue_ref} {step.detail}".rstrip()
    return one_line(f"{text}: {step.error}" if step.error else text)
