"""`remit work log`: what a run's program wrote."""

from __future__ import annotations

import shutil
import sys

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import pass_state
from remit.codes import Code
from remit.errors import NotFoundError


@click.command("log")
@click.argument("issue")
@click.argument("run", required=False, default="")
@click.option("--err", is_flag=True, help="What it wrote to stderr.")
@pass_state
def command(state: State, issue: str, run: str, err: bool) -> int:
    """Print what the program of a run wrote, exactly; of the newest run if none is named."""
    from remit.work.opening import root_of
    from remit.work.pack import STDERR, STDOUT, ContextPack
    from remit.work.references import IssueRef, RunId

    runs = [one.run_id for one in state.ask(lambda remit: remit.service.work.view(issue), code="unused").runs]
    chosen = str(RunId.parse(run)) if run else next(iter(runs), "")
    root = root_of(state.settings())
    pack = ContextPack.of(root, IssueRef.parse(issue), chosen)
    log = pack.open_log(STDERR if err else STDOUT) if chosen in runs else None
    if log is None:
        why = f"{issue} has no output of {chosen or 'any run'} on this machine"
        raise NotFoundError(why, code=Code.WORK_NOT_FOUND, remedy="`remit work show` lists its runs.")
    with log:
        shutil.copyfileobj(log, sys.stdout.buffer)
    return exit_codes.OK
