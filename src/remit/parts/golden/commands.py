"""`remit golden` and `remit check`: recorded jobs as files, and how code, tools, schemas and policy of today fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from remit.cli import complete
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import counted, one_line
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.parts.golden.file import Golden
    from remit.parts.golden.noun import CheckReport, Class


FOLDER: Final = "golden"
_MOST: Final = 1_000
COMMANDS: Final = {"add": LazyCommand("Golden jobs", "Export a job to a file of a folder.")}


@click.group("golden", cls=LazyGroup, package="remit.parts.golden.commands", entries=COMMANDS)
@click.pass_context
def golden_command(context: click.Context) -> None:
    """Export recorded jobs as golden ones, which `remit check` replays."""
    show_help(context)


@golden_command.command("add")
@click.argument("job", required=False, shell_complete=complete.jobs)
@click.option("--label", "labels", multiple=True, metavar="NAME=TEXT", help="Every job with this label; repeatable.")
@click.option("--name", default="", help="The golden job's name. Default: the job's id.")
@click.option("--to", "folder", default="golden", type=click.Path(path_type=Path), help="The folder. Default: golden.")
@click.option(
    "--secret-env", "variables", multiple=True, metavar="VARIABLE", help="The value of this is a secret; repeatable."
)
@json_option("file, name, events and secrets of each; a list")
@pass_state
def add(
    state: CommandState, job: str | None, labels: tuple[str, ...], name: str, folder: Path, variables: tuple[str, ...]
) -> int:
    """Export a job to a file of a folder.

    The file has every event with its values, and no secrets: what a name gives away, what has the shape of a token and
    what --secret-env names is replaced, the same text by the same word. Look at it before you commit it. JOB is an id,
    a unique ending of one, or `last`.
    """
    from remit.parts.golden.file import write

    if bool(job) == bool(labels) or (name and not job):
        raise UsageError("give JOB, or --label", remedy="remit golden add last, or remit golden add --label suite=ci")
    secrets = [_secret(variable) for variable in variables]
    wanted = dict(label_of(label) for label in labels)

    async def export(remit: Opened) -> list[Golden]:
        jobs = remit.service.jobs
        names = [await jobs.find(job)] if job else [row.job for row in await jobs.rows(labels=wanted, limit=_MOST)]
        return [await remit.service.golden.export(reference, name, secrets=secrets) for reference in names]

    rows = [
        {
            "file": str(write(folder, golden)),
            "name": golden.name,
            "events": len(golden.events),
            "secrets": golden.secrets,
        }
        for golden in state.ask(export, code="unused")
    ]
    return state.listing(rows, _print_golden, "no such jobs")


def _print_golden(state: CommandState, rows: list[dict[str, Any]]) -> None:

    for row in rows:
        replaced = f", {counted(row['secrets'], 'secret')} replaced" if row["secrets"] else ""
        state.output.out.line(f"{row['file']}  {counted(row['events'], 'event')}{replaced}")


def label_of(text: str) -> tuple[str, str]:
    """Return name and text of a label as a person writes it. Raise UsageError."""
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"--label {text!r:.80} has no '='", remedy="Write --label NAME=TEXT.")
    return name, value


def _secret(variable: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise UsageError(f"--secret-env {variable}: it is not set", remedy="Set it, or leave the option out.")
    return value


_CLASSES: Final = ("same", "annotation_only", "compatible", "breaking", "failed")
_STYLES: Final = {"same": "ok", "annotation_only": "ok", "compatible": "ok", "breaking": "warn", "failed": "fail"}
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command("check")
@click.argument("golden", nargs=-1, type=click.Path(path_type=Path))
@click.option("--label", "labels", multiple=True, metavar="NAME=TEXT", help="Only golden jobs with this; repeatable.")
@click.option(
    "--warn",
    type=click.Choice(_CLASSES[1:]),
    default="breaking",
    metavar="CLASS",
    help="From this class on the status is 1. Default: breaking.",
)
@click.option(
    "--fail",
    type=click.Choice(_CLASSES[1:]),
    default="failed",
    metavar="CLASS",
    help="From this class on the status is 2. Default: failed.",
)
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit's XML to this file.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="Append a table in Markdown to this file.")
@json_option("status, counts, and each job with its class and what differs")
@pass_state
def check_command(
    state: CommandState,
    golden: tuple[Path, ...],
    labels: tuple[str, ...],
    warn: str,
    fail: str,
    junit: Path | None,
    markdown: Path | None,
) -> int:
    """Replay golden jobs against the code, tools, schemas and policy of today.

    GOLDEN are files that `remit golden add` wrote, or folders of them; without one, the folder `golden`. Nothing is
    called, no server is started and no key is needed. Each job has a class: same, annotation_only, compatible, breaking
    (a schema or model broke, or a person would be asked) or failed (the code departs from the record, or a call would
    be refused).

    The status is 0, 1 from --warn on, 2 from --fail on or if nothing could be checked.
    """
    from remit.parts.golden import report as reports
    from remit.parts.golden.commands import FOLDER, label_of
    from remit.parts.golden.noun import read_all

    wanted = dict(label_of(label) for label in labels)
    paths = golden or tuple(filter(Path.exists, (Path(FOLDER),)))

    report: CheckReport = state.ask_here(
        lambda remit: remit.service.golden.check(
            read_all(paths, wanted), warn=cast("Class", warn), fail=cast("Class", fail)
        ),
        flags={"journal.url": ":memory:", "tools.no_mcp": True},
    )
    if junit is not None:
        junit.write_bytes(reports.junit(report, cast("Class", fail)))
    if markdown is not None:
        with markdown.open("a", encoding="utf-8") as file:
            file.write(reports.markdown(report))
    state.show(report, _print_check)
    return report.status


def _print_check(state: CommandState, report: CheckReport) -> None:
    from remit.parts.golden.report import details

    out = state.output.out
    for job in report.jobs:
        if job.result != "same" or job.ungoverned:
            out.line(f"{out.style(job.result, _STYLES[job.result])}  {one_line(job.name)}  {one_line(job.recipe)}")
            for line in details(job):
                out.line(f"    {one_line(line)}")
    counts = ", ".join(f"{count} {name}" for name, count in report.counts.items() if count)
    out.line(f"{counted(len(report.jobs), 'golden job')}: {counts or 'none'}")
