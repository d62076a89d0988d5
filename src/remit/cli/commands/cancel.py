"""`remit cancel`: stop a job for good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import pass_state
from remit.cli.output import reserved_stdout

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.record.views import JobRow

_PATIENCE_S: Final = 10.0
"""The time that a process that works on the job is waited for."""


@click.command("cancel")
@click.argument("job", shell_complete=complete.jobs)
@click.option("--reason", default="", help="The reason; it is recorded.")
@pass_state
def command(state: CommandState, job: str, reason: str) -> int:
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
