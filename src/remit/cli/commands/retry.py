"""`remit retry`: a failed job once more, with what it has recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import complete
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state, wait_option

if TYPE_CHECKING:
    from remit.cli.access import Opened


@click.command("retry")
@click.argument("job", shell_complete=complete.jobs)
@click.option(
    "--from", "step", default="", metavar="STEP", help="Run again from this step. Default: the one that failed."
)
@click.option("--repeat", is_flag=True, help="Repeat calls that took effect, or may have.")
@click.option("--reason", default="", help="The reason; it is recorded.")
@wait_option
@json_option("job, state, and result or error")
@pass_state
def command(state: CommandState, job: str, step: str, repeat: bool, reason: str, patient: bool) -> int:
    """Run a failed or cancelled job again, keeping its finished steps.

    Creates a new job that keeps every finished step except the one that failed, and continues from there with the
    current code. JOB itself is unchanged. With --from, STEP and every step that began after it run again. JOB is an id,
    a unique ending of one, or `last`.
    """
    from remit.cli.job_worker import work_on
    from remit.cli.runnable import count_in_files_of

    async def choose(remit: Opened, _new: str) -> list[str]:
        job_id = await remit.service.jobs.find(job)
        made = await remit.service.jobs.retry(job_id, step, repeat=repeat, reason=reason)
        state.note(f"retrying {job_id}" + (f"; again: step {', '.join(made.again)}" if made.again else ""))
        return [made.job]

    count_in_files_of(state, (job,))
    return work_on(state, choose, patient=patient)
