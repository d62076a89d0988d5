"""`remit trace`: the story of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import complete, exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.journal.event import Event


@click.command("trace")
@click.argument("job", shell_complete=complete.jobs)
@click.option("-f", "--follow", is_flag=True, help="Print the story as it happens, until the job ends.")
@click.option("--events", is_flag=True, help="Print the events instead of the story, with --follow as they come.")
@json_option("the story; with --events or --follow, an event on each line")
@pass_state
def command(state: State, job: str, follow: bool, events: bool) -> int:
    """Show what a job did: times, versions, approvals.

    For every step: when it began and how long it took, its arguments and result in short, the tool's provider, version
    and schemas, the rule that allowed it, and who answered which question when. JOB is an id, a unique ending of one,
    `last`, or the id of a session (`remit sessions`).
    """
    from remit.cli.running import run_to_end

    return run_to_end(_trace(state, job, follow=follow, events=events))


async def _trace(state: State, job: str, *, follow: bool, events: bool) -> int:
    async with state.open(code="unused") as remit:
        found = await remit.service.jobs.find(job)
        stream = remit.service.streams.name(found)
        if follow and not events and not state.as_json:
            from remit.cli.following import Following

            await Following(state.output.out, remit, found).run()
        elif follow:
            async for event in remit.service.streams.follow(stream):
                _event(state, event)
        elif events:
            for event in await remit.service.streams.events(stream):
                _event(state, event)
        elif state.as_json:
            state.output.json(await remit.service.streams.narrative(found))
        else:
            await _story(state, remit, found)
    return exit_codes.OK


async def _story(state: State, remit: Opened, job: str) -> None:
    from remit.cli.story import Story
    from remit.record.states import shown_state

    row = await remit.service.jobs.row(job)
    told = await remit.service.streams.narrative(job)
    if told.ended_at is not None:
        row = await remit.service.jobs.row(job)  # it may have ended since
    Story(state.output.out, told, shown_state(row)).write()


def _event(state: State, event: Event) -> None:
    from remit.cli.tables import clock_time
    from remit.cli.text import cut, one_line
    from remit.record.words import words

    out = state.output.out
    if state.as_json:
        state.output.json(_fields(event))
        return
    text = one_line(f"{event.kind:<24}  {words(event)}")
    shown = cut(text, out.width - 14) if out.width is not None else text
    out.line(f"{out.style(clock_time(event.at), 'dim')}  {shown}".rstrip())
    out.flush()


def _fields(event: Event) -> dict[str, Any]:
    import msgspec

    return {
        "stream": event.stream,
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "hash": event.hash.hex(),
        "data": msgspec.Raw(event.data),
    }
