"""`remit artifacts`: what a job's steps left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.cli.access import Opened
    from remit.record.views import ArtifactRow
    from remit.service.service import Service


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
def command(
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
    state.listing(rows, _print, "it has no such files" if names or step else "it has no files")
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


def _print(state: CommandState, rows: Sequence[ArtifactRow]) -> None:
    from remit.cli.tables import TableColumn, table

    columns = ("STEP", "BYTES", TableColumn("TYPE", style="dim"), TableColumn("NAME", whole=False))
    table(state.output.out, columns, [(row.step, str(row.bytes), row.media_type, row.path) for row in rows])
