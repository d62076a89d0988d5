"""`remit resume`: continue jobs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state, wait_option
from remit.cli.output import clean
from remit.errors import ChainBrokenError, StateError

if TYPE_CHECKING:
    from remit.cli.access import Opened

_OPEN: Final = ("pending", "running", "waiting")
_MOST: Final = 10_000


@click.command("resume")
@click.argument("jobs", nargs=-1, metavar="[JOB]...", shell_complete=complete.jobs)
@click.option("--all", "everything", is_flag=True, help="Every job that has not ended.")
@wait_option
@json_option("job, state, and result or error; a list for several jobs")
@pass_state
@click.pass_context
def command(context: click.Context, state: CommandState, jobs: tuple[str, ...], everything: bool, patient: bool) -> int:
    """Continue jobs that stopped or are waiting.

    Recorded steps are not done again. A job whose process died is taken over at once; a job that another process is
    running is only watched. Otherwise this works like `remit run`. JOB is an id, a unique ending of one, or `last`.
    Damaged jobs are named and left out by --all; the status is then 7.
    """
    if bool(jobs) == everything:
        raise click.UsageError("Give JOB or --all.", context)
    from remit.cli.job_worker import work_on
    from remit.cli.runnable import count_in_files_of

    damaged: list[str] = []

    async def choose(remit: Opened, _new: str) -> list[str]:
        if everything:
            listed = await remit.service.jobs.rows(_OPEN, limit=_MOST)
            for row in listed:
                try:
                    with suppress(StateError):  # it has ended since it was listed: how it ended is shown all the same
                        await _wake(state, remit, row.job)
                except ChainBrokenError as error:  # no worker continues it
                    state.output.err.line(f"{state.output.err.style('damaged', 'fail')} {clean(str(error))}")
                    damaged.append(row.job)
            return [row.job for row in listed if row.job not in damaged]
        job_ids = list(dict.fromkeys([await remit.service.jobs.find(job) for job in jobs]))
        for job in job_ids:
            await _wake(state, remit, job)
        return job_ids

    count_in_files_of(state, jobs, _OPEN if everything else ())
    status = work_on(state, choose, patient=patient)
    return exit_codes.DAMAGED if damaged else status


async def _wake(state: CommandState, remit: Opened, job: str) -> None:
    """Make a job due; say who works on it, if someone does."""
    from remit.record.states import holder, is_held

    row = await remit.service.jobs.row(job)
    if is_held(row):
        state.note(f"{holder(row)} is running {job}")
    await remit.service.jobs.resume(job)
