"""`remit work show`: an issue's runs, results and comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line

if TYPE_CHECKING:
    from remit.work.unit import Run
    from remit.work.views import UnitView


@click.command("show")
@click.argument("issue")
@json_option("the issue's work")
@pass_state
def command(state: State, issue: str) -> int:
    """Show where an issue stands: its state and why, and its runs with their results."""
    return state.show(state.ask(lambda remit: remit.service.work.view(issue), code="unused"), print_unit)


def print_unit(state: State, unit: UnitView) -> None:
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


def print_run(state: State, unit: UnitView, run: Run) -> None:
    """Print a run, and its result if it has one."""
    from remit.cli.tables import moment

    out = state.output.out
    result = unit.results.get(run.run_id)
    standing = result.status if result is not None else run.standing
    out.line(f"  {run.run_id}  {run.executor}  {standing}  {out.style(moment(run.started_at), 'dim')}")
    said = result.summary if result is not None else " ".join(part for part in (run.code, run.reason) if part)
    rows = [said] if said else []
    if result is not None:
        rows += [
            f"{name} {value}" for name, value in (("PR", result.changes.pr), ("commit", result.changes.commit)) if value
        ]
        rows += [f"{test.result}: {test.command}" for test in result.tests if test.command]
        rows += [f"code {result.result_code}"] if result.result_code else []
        sessions = [one.partition("/")[2] for one in result.artifacts if one.startswith("session/")]
        rows += [f"its calls: {state.command('trace', session)}" for session in sessions]
    if why := unit.unready.get(run.run_id):
        rows.append(f"its pull request does not say so: {why}")
    if run.previous:
        why = f": {run.reason}" if run.reason and result is not None else ""  # without a result it is said above
        rows.append(f"took the place of {run.previous}{why}")
    if run.late:
        rows.append(f"{run.late} late result{'s' if run.late > 1 else ''} archived")
    if run.job:
        rows.append(f"job {run.job}")
    for row in rows:
        out.line(f"    {one_line(row)}")
