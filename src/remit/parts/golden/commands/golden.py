"""`remit golden`: recorded jobs as files, for `remit check`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import complete
from remit.cli.context import CommandState
from remit.cli.group import LazyCommand, LazyGroup, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import counted
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.parts.golden.file import Golden

FOLDER: Final = "golden"
_MOST: Final = 1_000
COMMANDS: Final = {"add": LazyCommand("Golden jobs", "Export a job to a file of a folder.")}


@click.group("golden", cls=LazyGroup, package="remit.parts.golden.commands.golden", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Export recorded jobs as golden ones, which `remit check` replays."""
    show_help(context)


@command.command("add")
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
    return state.listing(rows, _print, "no such jobs")


def _print(state: CommandState, rows: list[dict[str, Any]]) -> None:

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
