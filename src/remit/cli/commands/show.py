"""Looks at one job: `remit show` and `remit artifacts`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, one_line, pretty, short
from remit.errors import UsageError
from remit.redact import mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.cli.access import Opened
    from remit.record.views import ArtifactRow, JobView, StepRow
    from remit.service.service import Service

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


@click.command("artifacts")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--step", metavar="STEP", default="", help="Only the files of this step.")
@click.option("--save", metavar="FOLDER", type=click.Path(path_type=Path), help="Save them in this folder.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--force-names", is_flag=True, help="Also save hidden files, and names that other programs run.")
@click.option("--cat", is_flag=True, help="Write one file to stdout.")
@json_option("the files, as a list")
@pass_state
@click.pass_context
def artifacts(
    context: click.Context,
    state: CommandState,
    job: str,
    names: tuple[str, ...],
    step: str,
    save: Path | None,
    force: bool,
    force_names: bool,
    cat: bool,
) -> int:
    """List, print or save the files that a job produced.

    NAME is a file's path as the program named it, a pattern such as `*.png`, `stdout` or `stderr`; without NAME, all
    files. If several steps left a file of the same name, the last one counts; --step picks another. Every file is
    checked against its digest. The program chose the names: --save refuses those that others obey or run, such as
    `.bashrc`, `conftest.py` or `hooks/x`, unless NAME is exactly that name, or with --force-names. JOB is an id, a
    unique ending of one, `last`, or a session's id.
    """
    if save is not None and cat:
        raise click.UsageError("Give --save or --cat, not both.", context)

    async def work(remit: Opened) -> list[ArtifactRow]:
        from remit.cli.file_writer import place_below, write

        job_id = await remit.service.jobs.find(job)
        rows = chosen(await remit.service.artifacts.rows(job_id), names, step, last=save is not None or cat)
        if cat:
            await _cat(remit.service, job_id, rows)
        elif save is not None:
            exact = [row.path for row in rows] if force_names else names
            places = [(row, place_below(save, row.path, force=force, named=row.path in exact)) for row in rows]
            for row, place in places:  # nothing is written if one is wrong
                write(place, await remit.service.artifacts.read(job_id, row.sha256))
        return rows

    rows = state.ask(work, code="unused")
    if cat:
        return exit_codes.OK
    state.listing(rows, _print_artifacts, "it has no such files" if names or step else "it has no files")
    if rows and save is not None:
        state.note(f"saved below {save}")
    return exit_codes.OK


def chosen(rows: Sequence[ArtifactRow], names: Sequence[str], step: str, *, last: bool) -> list[ArtifactRow]:
    """The rows that are asked for; `last`: of each name the last one only."""
    from fnmatch import fnmatchcase

    artifact_rows = [
        row
        for row in rows
        if (not step or row.step == step)
        and (not names or any(row.path == name or fnmatchcase(row.path, name) for name in names))
    ]
    return list({row.path: row for row in artifact_rows}.values()) if last else artifact_rows


async def _cat(service: Service, job: str, rows: Sequence[ArtifactRow]) -> None:

    if len(rows) != 1:
        remedy = f"`remit artifacts {job}` lists all files."
        raise UsageError(f"--cat prints one file, but {len(rows)} have that name", remedy=remedy)
    sys.stdout.buffer.write(await service.artifacts.read(job, rows[0].sha256))
    sys.stdout.buffer.flush()


def _print_artifacts(state: CommandState, rows: Sequence[ArtifactRow]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("STEP", "BYTES", TableColumn("TYPE", style="dim"), TableColumn("NAME", whole=False))
    table(state.output.out, columns, [(row.step, str(row.bytes), row.media_type, row.path) for row in rows])
