"""`remit work issue`: open an issue that is kept here.

`remit work decide`: put an issue into a state.

`remit work write`: write the comments that are queued for an issue.

`remit work board`: the issues that are worked on.

`remit work show`: an issue's runs, results and comments.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.errors import UsageError
from remit.parts.work.commands.stage import asking, show_staged, staged_option
from remit.parts.work.unit import STATES

if TYPE_CHECKING:
    from remit.parts.work.store import UnitRow
    from remit.parts.work.unit import Run
    from remit.parts.work.views import UnitView


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
