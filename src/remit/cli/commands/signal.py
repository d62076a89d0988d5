"""`remit signal`: send something to a job that waits for it."""

from __future__ import annotations

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import pass_state
from remit.cli.values import json_value


@click.command("signal")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("name")
@click.argument("payload", default="null", metavar="[PAYLOAD]")
@pass_state
def command(state: State, job: str, name: str, payload: str) -> int:
    """Send a signal to a job.

    PAYLOAD is JSON, or @FILE; the default is null. The job receives the signal when it waits for it. JOB is an id, a
    unique ending of one, or `last`.
    """
    from remit.cli.running import run_to_end

    value = json_value(payload, "PAYLOAD")

    async def send() -> tuple[str, list[str]]:
        async with state.open(code="unused", writes=True) as remit:
            found = await remit.service.jobs.find(job)
            waits = (await remit.service.jobs.view(found)).waits
            await remit.service.jobs.signal(found, name, value)
            return found, [wait.key for wait in waits if wait.type == "signal"]

    found, awaited = run_to_end(send())
    state.note(f"sent {name} to {found}; if no worker runs, continue with: {state.command('resume', found)}")
    if awaited and name not in awaited:
        state.note(f"it waits for another signal now: {', '.join(awaited)}")
    return exit_codes.OK
