"""Commands on issues: init, issue, decide, write, board, show; and `--staged`, which shows what would be written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.codes import Code
from remit.errors import StateError, UsageError
from remit.parts.work.unit import STATES
from remit.regex import regex

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from remit.cli.access import Opened
    from remit.parts.work.stage import StagedWrite, Verb
    from remit.parts.work.store import UnitRow
    from remit.parts.work.unit import Run
    from remit.parts.work.views import UnitView

staged_option = click.option("--staged", is_flag=True, help="Show what would be written and started, and do nothing.")


def show_staged(state: CommandState, verb: Verb, args: dict[str, Any]) -> int:
    """Print what an operation of the work would do; the exit status."""
    return print_staged(state, state.ask(lambda remit: remit.service.work.staged(verb, args), code="unused"))


def print_staged(state: CommandState, writes: list[StagedWrite]) -> int:
    """Print what would be done; the exit status."""
    return state.show(writes, _print_staged)


def _print_staged(state: CommandState, writes: list[StagedWrite]) -> None:

    out = state.output.out
    for write in writes:
        out.line(f"{out.style(write.by, 'bold')}  {one_line(write.what)}")
        for text in write.diff.splitlines():
            out.line(f"    {one_line(text)}")
    state.note("nothing was written")


T = TypeVar("T")
_QUESTION: Final = regex(r"\bc_[0-9a-z]{10,}")


def asking(state: CommandState, act: Callable[[Opened], Awaitable[T]]) -> Callable[[Opened], Awaitable[T]]:
    """Return `act`, done again once a person at the terminal has answered what it waits for."""
    from remit.cli.prompt import TerminalPrompt

    async def acted(remit: Opened) -> T:
        while True:
            try:
                return await act(remit)
            except StateError as error:
                waits = _QUESTION.search(error.remedy) if error.code is Code.CONFIRMATION_REQUIRED else None
                if waits is None or state.as_json or not state.output.interactive:
                    raise
                question = await remit.service.confirmations.view(waits[0])
                if not await TerminalPrompt(remit, state.output).ask(question):
                    raise

    return acted


@click.command("issue")
@click.argument("title")
@click.option("--spec", metavar="FILE", type=click.Path(path_type=Path), help="The specification, in Markdown.")
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="Such as prio:p1; repeatable.")
@click.option("--parent", default="", metavar="ISSUE", help="The issue of which it is a part.")
@staged_option
@json_option("the reference")
@pass_state
def issue(
    state: CommandState, title: str, spec: Path | None, labels: tuple[str, ...], parent: str, staged: bool
) -> int:
    """Open an issue, and print its reference, such as local#1."""
    try:
        body = spec.read_text(encoding="utf-8") if spec is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--spec {spec}: {error}", remedy="Name a text file.") from error

    if staged:
        return show_staged(state, "issue", {"title": title, "body": body, "labels": labels, "parent": parent})

    reference: str = state.ask(
        asking(state, lambda remit: remit.service.work.issue(title, body=body, labels=labels, parent=parent)),
        writes=True,
        creates=True,
    )
    return state.show({"issue_ref": reference}, lambda state, _: state.output.out.line(reference))


@click.command("decide")
@click.argument("issue")
@click.argument("to", metavar="STATE", type=click.Choice(STATES))
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@staged_option
@json_option("the issue's work")
@pass_state
def decide(state: CommandState, issue: str, to: str, reason: str, staged: bool) -> int:
    """Put an issue into a state: done after a review, todo to open it again, blocked.

    Only a decision makes an issue done. It is refused while a run is active.
    """
    if staged:
        return show_staged(state, "decide", {"issue_ref": issue, "state": to, "reason": reason})

    unit = state.ask(lambda remit: remit.service.work.decide(issue, to, reason=reason), code="unused", writes=True)
    return state.show(unit, print_unit)


@click.command("write")
@click.argument("issue")
@staged_option
@json_option("the issue's work")
@pass_state
def write(state: CommandState, issue: str, staged: bool) -> int:
    """Write the comments that are queued for an issue, each once, such as after a crash."""
    if staged:
        return show_staged(state, "write", {"issue_ref": issue})

    unit = state.ask(asking(state, lambda remit: remit.service.work.write(issue)), writes=True)
    return state.show(unit, print_unit)


@click.command("board")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), help="Only issues in this state; repeatable."
)
@click.option("--limit", metavar="N", default=100, type=click.IntRange(1, 10_000), help="Show at most N. Default: 100.")
@json_option("the issues")
@pass_state
def board(state: CommandState, states: tuple[str, ...], limit: int) -> int:
    """List the issues that are worked on, newest first."""
    return state.listing(
        state.ask(lambda remit: remit.service.work.board(states=states, limit=limit), code="unused"),
        _print,
        "nothing is worked on: `remit work issue` opens an issue",
    )


def _print(state: CommandState, rows: list[UnitRow]) -> None:
    from remit.cli.tables import TableColumn, moment, table

    columns = (
        "ISSUE",
        "STATE",
        "RUN",
        "EXECUTOR",
        TableColumn("CHANGED", style="dim"),
        TableColumn("TITLE", whole=False),
    )
    cells = [
        (row.issue_ref, row.state, row.run_id or "-", row.executor or "-", moment(row.updated_at), row.title)
        for row in rows
    ]
    table(state.output.out, columns, cells)


@click.command("show")
@click.argument("issue")
@json_option("the issue's work")
@pass_state
def show(state: CommandState, issue: str) -> int:
    """Show where an issue stands: its state and why, and its runs with their results."""
    return state.show(state.ask(lambda remit: remit.service.work.view(issue), code="unused"), print_unit)


def print_unit(state: CommandState, unit: UnitView) -> None:
    """Print an issue's work."""
    out = state.output.out
    out.line(f"{out.style(unit.issue_ref, 'bold')}  {unit.state}  {one_line(unit.title)}")
    if unit.reason:
        out.line(f"  {one_line(unit.reason)}")
    if unit.parent:
        out.line(f"  part of {unit.parent}")
    if unit.children:
        done = sum(child.state == "done" for child in unit.children)
        out.line(f"  {done} of {len(unit.children)} part{'s' if len(unit.children) > 1 else ''} done")
    for child in unit.children:
        out.line(f"    {child.issue_ref}  {child.state}  {one_line(child.title)}")
    for run in unit.runs:
        print_run(state, unit, run)
    for trigger in unit.unwritten:
        out.line(
            out.style(f"  not written yet: {trigger} ({state.command('work', 'write', unit.issue_ref)})", "yellow")
        )


def print_run(state: CommandState, unit: UnitView, run: Run) -> None:
    """Print a run, and its result if it has one."""
    from remit.cli.tables import moment

    out = state.output.out
    result = unit.results.get(run.run_id)
    standing = result.status if result is not None else run.standing
    out.line(f"  {run.run_id}  {run.executor}  {standing}  {out.style(moment(run.started_at), 'dim')}")
    text = result.summary if result is not None else " ".join(part for part in (run.code, run.reason) if part)
    rows = [text] if text else []
    if result is not None:
        rows += [
            f"{name} {value}" for name, value in (("PR", result.changes.pr), ("commit", result.changes.commit)) if value
        ]
        rows += [f"{test.result}: {test.command}" for test in result.tests if test.command]
        rows += [f"code {result.result_code}"] if result.result_code else []
        sessions = [artifact.partition("/")[2] for artifact in result.artifacts if artifact.startswith("session/")]
        rows += [f"its calls: {state.command('trace', session)}" for session in sessions]
    if reason := unit.unready.get(run.run_id):
        rows.append(f"its pull request does not say so: {reason}")
    if run.previous:
        reason = f": {run.reason}" if run.reason and result is not None else ""  # without a result it is said above
        rows.append(f"took the place of {run.previous}{reason}")
    if run.late:
        rows.append(f"{run.late} late result{'s' if run.late > 1 else ''} archived")
    if run.job:
        rows.append(f"job {run.job}")
    for row in rows:
        out.line(f"    {one_line(row)}")


_SCHEMA: Final = ".remit/workflow.schema.json"
_WORKFLOW: Final = """\
#:schema ./.remit/workflow.schema.json
# How this project hands out its work. `remit work --help` lists the commands; docs/work.md explains every key.

[outbox]
backend = "local"            # issues are kept in Remit's journal: local#1, local#2, ...

# A program that does the work, or that tests it. It runs in a git worktree of its own, with stdin closed.
# {pack} is the context pack, {repo} the worktree, {issue} and {run} name the work; the environment says it too:
# REMIT_CONTEXT_PACK, REMIT_ISSUE_REF, REMIT_RUN_ID. The worktree begins at your last commit: commit work.sh first.
# It runs in the sandbox (`remit sandbox probe` says whether there is one); isolation = "none" runs it with your rights.
[executors.shell]
program = "sh"
args = ["work.sh"]
timeout_seconds = 3600

# Of every run. Remit itself runs the commands, on what the run committed; each must end with exit code 0.
[constraints]
forbidden_paths = []
notes = []
# [[constraints.commands]]
# args = ["make", "test"]
# timeout_seconds = 600
"""
_TEMPLATE: Final = """\
SpecRef: none
ContractsRef: none
Repo: .
Role: work
Priority: prio:p2

## Goal

## Scope

## DependsOn

## BlockedBy

## Acceptance Criteria
"""
_RULES: Final = """\
# What runs without a question: opening issues, comments on them, their labels.
[[policy.rules]]
id = "outbox"
effect = "allow"
tools = "outbox.*"
"""
_FILES: Final = {"workflow.toml": _WORKFLOW, ".remit/issue.md": _TEMPLATE}


@click.command("init")
@staged_option
@json_option("the files that were written")
@pass_state
def init(state: CommandState, staged: bool) -> int:
    """Write a commented workflow.toml and an issue template into this folder.

    A file that is there stays as it is. The rule that lets Remit write to local issues without a question is printed.
    """
    from remit.wiring.schemas import schema_text

    folder = Path.cwd()
    if not any((place / ".git").exists() for place in (folder, *folder.parents)):
        reason = f"{folder} is in no git repository, and runs work in worktrees of one"
        remedy = "Begin where the code is, or: git init && git add . && git commit -m Begin"
        raise UsageError(reason, code=Code.env_unavailable, remedy=remedy)
    files = {**_FILES, _SCHEMA: schema_text("workflow.toml")}
    written = [name for name in files if not (folder / name).exists() and not (folder / name).is_symlink()]
    if not staged:
        from remit.cli.trust_question import still_trusted

        with still_trusted(state.settings, trusted=state.trust):
            for name in written:
                path = folder / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.write_text(files[name], encoding="utf-8")

    def told(state: CommandState, _: object) -> None:
        for name in written:
            state.output.out.line(f"{'would write' if staged else 'wrote'} {name}")

    state.show({"files": written}, told)
    state.note(
        "opening issues and writing to them asks you first; to let Remit write without, add this to remit.toml:\n\n"
        + _RULES
    )
    state.note(f'next: {state.command("work", "issue")} "Fix the flaky test"')
    return exit_codes.OK
