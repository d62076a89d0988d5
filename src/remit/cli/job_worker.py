"""Works on chosen jobs in this process, and on no others, until they end or wait; what `run` and `resume` share.

If commands are sent to a server, it works on the jobs, and this process only watches them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from remit.cli.catalog_record import record_once
from remit.cli.ends import end_of, present, status
from remit.cli.errors import InterruptedByUserError
from remit.cli.output import reserved_stdout
from remit.cli.prompt import TerminalPrompt
from remit.cli.runner import SignalStop, run_async
from remit.cli.watch import JobWatch, LineView, LiveView, Silent, followed
from remit.errors import RemitError
from remit.ids import new_id
from remit.jobs.state import KIND, stream_of
from remit.journal.sharded.placement import new_identifier
from remit.record.job_story import JobStory

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.access import Opened
    from remit.cli.context import CommandState
    from remit.cli.ends import End

_SAID: Final = 100
"""Characters that are shown of what a model is saying."""
_MANY: Final = 3
"""Jobs whose identifiers a hint spells out."""

Choose = Callable[["Opened", str], Awaitable[list[str]]]
"""Creates or finds the jobs to work on; one that it creates gets the identifier."""
Leave = Callable[["Opened"], Awaitable[None]]


def work_on(
    state: CommandState,
    choose: Choose,
    *,
    patient: bool,
    creates: bool = False,
    leave: Leave | None = None,
    tell: Callable[[CommandState, list[End]], None] = present,
) -> int:
    """Work on jobs, show how far they are, print how they were left; the exit status.

    `patient`: also wait for what others have to do; `creates`: a journal that is not there is made; `leave` ends them
    for good where Ctrl-C would leave them to be resumed; `tell` prints.
    Raises InterruptedByUserError, with what to do next.
    """
    chosen: list[str] = []
    try:
        with reserved_stdout():
            see = _watch if state.server else _work
            ends = run_async(lambda stop: see(state, choose, chosen, stop, leave, patient=patient, creates=creates))
    except InterruptedByUserError as error:
        raise _detached(state, chosen) from error
    tell(state, ends)
    return status(ends)


async def _work(
    state: CommandState,
    choose: Choose,
    chosen: list[str],
    stop: SignalStop,
    leave: Leave | None,
    *,
    patient: bool,
    creates: bool,
) -> list[End]:
    view = _view(state)
    async with state.remit(creates=creates, report=view.progress) as remit, remit.sending():
        engine = remit.engine
        try:
            remit.service.jobs.keeper = engine.owner
            # Not before the journal is open, which then knows where it answers.
            new = await new_identifier("job", KIND, remit.service.streams.answers)
            await _choose(state, remit, choose, chosen, new)
        finally:
            remit.service.jobs.keeper = ""
        stop.hurry = engine.stop
        try:
            if not remit.settings.mcp.servers:  # which no listing has to start
                await record_once(remit)
            remit.awaited.update(map(stream_of, chosen))
            engine.start(only=remit.awaited, keep=True)
            engine.wake()  # it may have been started to end what `choose` waited for
            jobs = await _see_through(state, remit, chosen, view, patient=patient)
        except asyncio.CancelledError:
            if leave is not None:
                await leave(remit)
            jobs = await _stopped(state, remit, chosen)
            if not all(job.ended for job in jobs):
                raise
        return [await end_of(remit, job, whole=state.as_json) for job in jobs]


async def _watch(
    state: CommandState,
    choose: Choose,
    chosen: list[str],
    _stop: SignalStop,
    _leave: Leave | None,
    *,
    patient: bool,
    creates: bool,
) -> list[End]:
    """See jobs through that a server works on."""
    view = _view(state)
    async with state.open(creates=creates) as remit:
        await _choose(state, remit, choose, chosen, new_id("job"))
        jobs = await _see_through(state, remit, chosen, view, patient=patient)
        return [await end_of(remit, job, whole=state.as_json) for job in jobs]


async def _choose(state: CommandState, remit: Opened, choose: Choose, chosen: list[str], new: str) -> None:
    """Add the jobs to `chosen`, and say which they are."""
    try:
        chosen += await choose(remit, new)
    except asyncio.CancelledError:  # which does not take back what was sent, or was on its way to the journal
        with suppress(RemitError):
            chosen.append((await remit.service.jobs.row(new)).job)
        raise
    _announce(state, chosen)


async def _see_through(
    state: CommandState, remit: Opened, chosen: list[str], view: Silent, *, patient: bool
) -> list[JobStory]:
    """Show the jobs, and ask what they ask, until each has ended or is left to others."""
    asker = TerminalPrompt(remit, state.output) if state.output.interactive and not state.as_json else None
    jobs = [JobStory(await remit.service.jobs.row(job)) for job in chosen]
    async with view, _listening(remit, chosen, view):
        await JobWatch(remit, jobs, view, asker, patient=patient).run()
    return jobs


@asynccontextmanager
async def _listening(remit: Opened, jobs: list[str], view: Silent) -> AsyncIterator[None]:
    """Show what models are saying while they say it."""
    tasks = [asyncio.create_task(_listen(remit, job, view)) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _listen(remit: Opened, job: str, view: Silent) -> None:
    speech, step = "", ""
    async for piece in remit.service.streams.said(job):
        if piece.delta.kind == "text":
            speech = (speech if piece.step == step else "") + piece.delta.text
            speech, step = speech[-_SAID:], piece.step
            view.progress(job, None, None, " ".join(speech.split()))


def _announce(state: CommandState, jobs: list[str]) -> None:
    if len(jobs) == 1:
        state.note(f"job {jobs[0]}")
    else:
        state.note(f"{len(jobs)} jobs" if jobs else "there is nothing to resume")


async def _stopped(state: CommandState, remit: Remit, chosen: list[str]) -> list[JobStory]:
    """The jobs as they are left: at once, unless a call with side effects is under way, which gets its time to end."""
    engine = remit.engine
    await engine.drain(0)  # so that no call begins while it is looked which ones are under way
    if any(job.risky for job in [await followed(remit, job) for job in chosen]):
        seconds = remit.settings.jobs.drain_seconds
        state.note(f"a call with side effects is under way; it has {seconds} s to end. Once more stops at once.")
        await engine.drain(seconds)
    await engine.stop()
    jobs = [await followed(remit, job) for job in chosen]
    if any(job.risky for job in jobs):
        state.note("the call was cut off: whether it happened is unknown, and you are asked when the job is resumed")
    return jobs


def _view(state: CommandState) -> Silent:
    err = state.output.err
    if state.quiet or state.as_json:
        return Silent()
    # Log lines and a picture redrawn in place do not go together.
    return LiveView(err) if err.is_terminal and not state.verbose else LineView(err)


def _detached(state: CommandState, jobs: list[str]) -> InterruptedByUserError:
    if not jobs:
        return InterruptedByUserError("stopped; no job was started")
    if len(jobs) > _MANY:
        hints: tuple[str, ...] = (f"resume with: {state.command('resume', '--all')}",)
    else:
        hints = (
            f"{'watch' if state.server else 'resume'} with: {state.command('resume', *jobs)}",
            *(f"cancel with: {state.command('cancel', job)}" for job in jobs),
        )
    what = jobs[0] if len(jobs) == 1 else f"{len(jobs)} jobs"
    if state.server:
        return InterruptedByUserError(f"stopped watching; the server continues with {what}", hints)
    return InterruptedByUserError(f"stopped; everything recorded of {what} stays", hints)
