"""`remit check`: golden jobs against today's code, tools, schemas and policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import counted, one_line

if TYPE_CHECKING:
    from remit.parts.golden.noun import CheckReport, Class

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
def command(
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
    from remit.parts.golden.commands.golden import FOLDER, label_of
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
    state.show(report, _print)
    return report.status


def _print(state: CommandState, report: CheckReport) -> None:
    from remit.parts.golden.report import details

    out = state.output.out
    for job in report.jobs:
        if job.result != "same" or job.ungoverned:
            out.line(f"{out.style(job.result, _STYLES[job.result])}  {one_line(job.name)}  {one_line(job.recipe)}")
            for line in details(job):
                out.line(f"    {one_line(line)}")
    counts = ", ".join(f"{count} {name}" for name, count in report.counts.items() if count)
    out.line(f"{counted(len(report.jobs), 'golden job')}: {counts or 'none'}")
