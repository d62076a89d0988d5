"""Words that a person has for a job: `remit decide`, `remit cancel` and `remit signal`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import pass_state
from remit.cli.output import reserved_stdout
from remit.cli.values import json_value

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.record.views import JobRow


@click.command("decide")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("step", shell_complete=complete.steps)
@click.option("--done", metavar="JSON|@FILE", help="The call took effect, and this is its result.")
@click.option("--retry", is_flag=True, help="The call did not take effect: make it again.")
@click.option("--fail", is_flag=True, help="Treat the call as failed.")
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="The attempt you saw: fail if another one waits.",
)
@click.option("--replace", is_flag=True, help="Correct an earlier decision that no worker has used yet.")
@click.option("--reason", default="", help="The reason; it is recorded.")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: CommandState,
    job: str,
    step: str,
    done: str | None,
    retry: bool,
    fail: bool,
    attempt: int | None,
    replace: bool,
    reason: str,
) -> int:
    """Resolve a step whose outcome is unknown.

    If a process dies during a call with side effects, Remit cannot know whether the call took effect, and does not
    guess. Your decision applies to this attempt only, and the first decision counts; --replace corrects it. JOB is an
    id, a unique ending of one, or `last`; `remit show JOB` lists its steps.
    """
    if [done is not None, retry, fail].count(True) != 1:
        raise click.UsageError("Use exactly one of --done, --retry and --fail.", context)
    decision: Literal["done", "retry", "fail"] = "done" if done is not None else "retry" if retry else "fail"
    value: Any = json_value(done, "--done") if done is not None else None

    async def decide(remit: Opened) -> str:
        job_id = await remit.service.jobs.find(job)
        await remit.service.steps.decide(job_id, step, decision, value, attempt=attempt, reason=reason, replace=replace)
        return job_id

    job_id = state.ask(decide, code="unused", writes=True)
    state.note(f"recorded; if no worker runs, continue with: {state.command('resume', job_id)}")
    return exit_codes.OK


_PATIENCE_S: Final = 10.0
"""The time that a process that works on the job is waited for."""


@click.command("cancel")
@click.argument("job", shell_complete=complete.jobs)
@click.option("--reason", default="", help="The reason; it is recorded.")
@pass_state
def cancel(state: CommandState, job: str, reason: str) -> int:
    """Stop a job for good.

    The process that runs the job stops what is under way; if no process runs it, the job ends at once. To stop a job
    only for a while, press Ctrl-C where it runs. JOB is an id, a unique ending of one, or `last`.
    """

    async def stop(remit: Opened) -> JobRow:
        job_id = await remit.service.jobs.find(job)
        await remit.service.jobs.cancel(job_id, reason=reason)
        async with _working(remit, job_id):
            return await _ended(remit, job_id)

    with reserved_stdout():
        row = state.ask(stop, code="wanted")
    if row.state == "cancelled":
        state.note(f"{row.job} is cancelled")
        return exit_codes.OK
    from remit.record.states import holder

    who = f"; {holder(row)} has not stopped it yet" if row.worker else ""
    state.note(f"{row.job} was asked to stop and is {row.state}{who}")
    return exit_codes.OK if row.state in exit_codes.OF_STATE else exit_codes.WAITING


@asynccontextmanager
async def _working(remit: Opened, job: str) -> AsyncIterator[None]:
    """Work on the job within the block, so that it ends if no other process works on it; a server does that itself."""
    from remit.app import Remit
    from remit.jobs.state import stream_of

    if not isinstance(remit, Remit):
        yield
        return
    engine = remit.engine
    engine.start(only={stream_of(job)})
    try:
        yield
    finally:
        await engine.stop()


async def _ended(remit: Opened, job: str) -> JobRow:
    """Return where the job stands once it has ended, or did not in time."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await remit.ended(job)
    except TimeoutError:
        return await remit.service.jobs.row(job)


@click.command("signal")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("name")
@click.argument("payload", default="null", metavar="[PAYLOAD]")
@pass_state
def signal(state: CommandState, job: str, name: str, payload: str) -> int:
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
