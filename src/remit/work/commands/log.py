"""`remit work log`: what a run's program wrote."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import pass_state
from remit.cli.output import clean
from remit.codes import Code
from remit.errors import NotFoundError
from remit.redact import mask

_LINES: Final = 5
_END: Final = 4_096
"""Bytes of what a program wrote in which its last lines are."""


@click.command("log")
@click.argument("issue")
@click.argument("run", required=False, default="")
@click.option("--err", is_flag=True, help="What it wrote to stderr.")
@pass_state
def command(state: State, issue: str, run: str, err: bool) -> int:
    """Print what the program of a run wrote; of the newest run if none is named.

    Into a pipe or a file it goes exactly as it is; on a terminal, what would control it is shown as an escape.
    """
    from remit.work.folder import WorkFolder
    from remit.work.pack import STDERR, STDOUT, ContextPack
    from remit.work.references import IssueRef, RunId

    runs = [one.run_id for one in state.ask(lambda remit: remit.service.work.view(issue), code="unused").runs]
    chosen = str(RunId.parse(run)) if run else next(iter(runs), "")
    pack = ContextPack.of(WorkFolder(state.settings()).path, IssueRef.parse(issue), chosen)
    log = pack.open_log(STDERR if err else STDOUT) if chosen in runs else None
    if log is None:
        why = f"{issue} has no output of {chosen or 'any run'} on this machine"
        raise NotFoundError(why, code=Code.WORK_NOT_FOUND, remedy="`remit work show` lists its runs.")
    out = state.output.out
    with log:
        if not out.is_terminal:
            shutil.copyfileobj(log, sys.stdout.buffer)
        for line in log if out.is_terminal else ():
            out.line(clean(line.decode(errors="backslashreplace").rstrip("\r\n")))
    return exit_codes.OK


def last_errors(state: State, issue: str, run: str) -> list[str]:
    """Return the last lines that a run's program wrote to stderr on this machine, with secrets masked."""
    from remit.work.folder import WorkFolder
    from remit.work.pack import STDERR, ContextPack
    from remit.work.references import IssueRef

    log = ContextPack.of(WorkFolder(state.settings()).path, IssueRef.parse(issue), run).open_log(STDERR)
    if log is None:
        return []
    with log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _END))
        lines = mask(log.read().decode(errors="replace")).splitlines()
    return [clean(line) for line in lines[-_LINES:]]
