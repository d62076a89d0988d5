"""`remit signal`: send something to a job that waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import pass_state
from remit.cli.values import json_value

if TYPE_CHECKING:
    from remit.cli.access import Opened


@click.command("signal")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("name")
@click.argument("payload", default="null", metavar="[PAYLOAD]")
@pass_state
def command(state: CommandState, job: str, name: str, payload: str) -> int:
    """Send a signal to a job.

    PAYLOAD is JSON, or @FILE; the default is null. The job receives the signal when it waits for it. JOB is an id, a
    unique ending of one, or `last`.
    """
    value = json_value(payload, "PAYLOAD")

    async def send(remit: Opened) -> tuple[str, list[str]]:
        job_id = await remit.service.jobs.find(job)
        waits = (await remit.service.jobs.view(job_id)).waits
        await remit.service.jobs.signal(job_id, name, value)
        return job_id, [wait.key for wait in waits if wait.type == "signal"]

    job_id, awaited = state.ask(send, code="unused", writes=True)
    state.note(f"sent {name} to {job_id}; if no worker runs, continue with: {state.command('resume', job_id)}")
    if awaited and name not in awaited:
        state.note(f"it waits for another signal now: {', '.join(awaited)}")
    return exit_codes.OK
