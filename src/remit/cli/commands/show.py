"""`remit show`: one job, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from remit.cli import complete
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, one_line, pretty, short
from remit.redact import mask

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.record.views import JobView, StepRow

_VALUE: Final = 4_000
"""Characters of an input or result that are shown; `--json` has all of it."""


@click.command("show")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("step", required=False, shell_complete=complete.steps)
@json_option("the whole job or step")
@pass_state
def command(state: CommandState, job: str, step: str | None) -> int:
    """Show a job (input, steps, result), or one of its steps.

    With STEP, shows that step in full: arguments and result, what failed and where, the tool's versions, the rule that
    decided and who approved. Secrets are masked; --json shows values as recorded. JOB is an id, a unique ending of one,
    or `last`.
    """
    from remit.cli.runner import run_async

    if step is not None:
        from remit.cli.step import show_step

        return run_async(lambda _stop: show_step(state, job, step))

    async def look(remit: Opened) -> JobView:
        return await remit.service.jobs.view(await remit.service.jobs.find(job))

    view = state.ask(look, code="unused")
    return state.show(view, _print)


def _print(state: CommandState, view: JobView) -> None:
    from remit.cli.ends import failed, waiting
    from remit.cli.tables import fields, moment
    from remit.clock import duration
    from remit.record.states import holder, is_held, shown_state
    from remit.record.values import given_of

    out, row = state.output.out, view.row
    shown = shown_state(row)
    out.line(f"{out.style(row.job, 'bold')}  {one_line(row.name)}  {out.style(shown, shown)}")
    labels = ", ".join(f"{key}={value}" for key, value in row.labels.items())
    fields(
        out,
        [
            ("title", "" if row.title.startswith(f"{row.name} {{") else one_line(row.title)),
            ("asked by", one_line(view.principal)),
            ("started by", one_line(view.schedule.words) if view.schedule else ""),
            ("retry of", one_line(view.retry_of)),
            ("fork of", one_line(view.fork_of or "")),
            ("created", moment(row.created_at)),
            ("last event", f"{moment(row.updated_at)}, {duration(row.updated_at - row.created_at)} later"),
            ("worked on by", holder(row) if is_held(row) else ""),
            ("code", view.execution_version),
            ("ran as", view.ran_version if view.ran_version != view.execution_version else ""),
            ("file", one_line(view.module)),
            ("skills", one_line(", ".join(view.skills or ()))),
            ("labels", one_line(labels)),
            ("events", str(view.events)),
            ("trace id", view.trace_id),
        ],
    )
    _value(state, "input", given_of(view.input))
    _steps(state, view.steps)
    if row.state == "failed" and view.error is not None:
        out.flush()
        failed(state, row.job, view.error)
    elif row.state == "completed":
        _value(state, "result", view.result)
    elif row.state == "waiting":
        state.output.out.flush()
        waiting(state, view)
    elif shown == "stopped":
        state.note(f"  {state.output.err.style('->', 'cyan')} {state.command('resume', row.job)}")


def _steps(state: CommandState, steps: tuple[StepRow, ...]) -> None:
    from remit.cli.tables import TableColumn, table
    from remit.clock import duration

    columns = (
        "STEP",
        "WHAT",
        TableColumn("STATE", states=True),
        TableColumn("TIME", style="dim"),
        TableColumn("ABOUT", whole=False),
    )
    times = (duration(step.duration_us) if step.duration_us else "" for step in steps)
    rows = [
        (step.step, short(step.name), step.state, time, _about(step)) for step, time in zip(steps, times, strict=True)
    ]
    if rows:
        state.output.out.line()
    table(state.output.out, columns, rows, indent=2)


def _about(step: StepRow) -> str:
    from remit.redact import line

    if step.error_code:
        return line(f"{step.error_code}: {step.reason}")
    if step.undone == "compensated":
        return "undone"
    return step.meta.result_preview or step.reason or step.meta.args_preview or step.confirmation


def _value(state: CommandState, name: str, value: object) -> None:

    out = state.output.out
    whole = mask(pretty(value))
    out.line()
    out.line("  " + out.style(name, "dim"))
    for line in clean(whole[:_VALUE]).split("\n"):
        out.line("    " + line)
    if len(whole) > _VALUE:
        out.line(f"    … {len(whole) - _VALUE} characters more; --json shows them")
