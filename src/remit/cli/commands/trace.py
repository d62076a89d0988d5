"""`remit trace`: the story of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import cut, one_line
from remit.cli.story import StoryWriter as Teller
from remit.journal import kinds as k
from remit.journal.lineage import EventOrigin, EventOrigins
from remit.record.story import EventStory, Narrative

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.cli.output import OutputChannel
    from remit.journal.event import Event
    from remit.record.step import StepNarrative


@click.command("trace")
@click.argument("job", shell_complete=complete.jobs)
@click.option("-f", "--follow", is_flag=True, help="Print the story as it happens, until the job ends.")
@click.option("--events", is_flag=True, help="Print the events instead of the story, with --follow as they come.")
@json_option("the story; with --events or --follow, an event on each line")
@pass_state
def command(state: CommandState, job: str, follow: bool, events: bool) -> int:
    """Show what a job did: times, versions, approvals.

    For every step: when it began and how long it took, its arguments and result in short, the tool's provider, version
    and schemas, the rule that allowed it, and who answered which question when. JOB is an id, a unique ending of one,
    `last`, or the id of a session (`remit sessions`).
    """
    from remit.cli.runner import run_to_end

    return run_to_end(_trace(state, job, follow=follow, events=events))


async def _trace(state: CommandState, job: str, *, follow: bool, events: bool) -> int:
    async with state.open(code="unused") as remit:
        job_id = await remit.service.jobs.find(job)
        stream = remit.service.streams.name(job_id)
        if follow and not events and not state.as_json:
            await Following(state.output.out, remit, job_id).run()
        elif follow:
            origins = EventOrigins()
            async for event in remit.service.streams.follow(stream):
                _event(state, event, origins.of(k.decode(event.kind, event.data), event))
        elif events:
            origins = EventOrigins()
            for event in await remit.service.streams.events(stream):
                _event(state, event, origins.of(k.decode(event.kind, event.data), event))
        elif state.as_json:
            state.output.json(await remit.service.streams.narrative(job_id))
        else:
            await _story(state, remit, job_id)
    return exit_codes.OK


async def _story(state: CommandState, remit: Opened, job: str) -> None:
    from remit.cli.story import StoryWriter
    from remit.record.states import shown_state

    row = await remit.service.jobs.row(job)
    narrative = await remit.service.streams.narrative(job)
    if narrative.ended_at is not None:
        row = await remit.service.jobs.row(job)  # it may have ended since
    StoryWriter(state.output.out, narrative, shown_state(row)).write()


def _event(state: CommandState, event: Event, origin: EventOrigin) -> None:
    from remit.cli.tables import clock_time, moment
    from remit.record.teller import words

    out = state.output.out
    if state.as_json:
        state.output.json(_fields(event, origin))
        return
    taken = f" (taken from {origin.job}, recorded {moment(origin.at)})" if origin.job else ""
    text = one_line(f"{event.kind:<24}  {words(event)}{taken}")
    shown = cut(text, out.width - 14) if out.width is not None else text
    out.line(f"{out.style(clock_time(event.at), 'dim')}  {shown}".rstrip())
    out.flush()


def _fields(event: Event, origin: EventOrigin) -> dict[str, Any]:
    import msgspec

    return {
        "stream": event.stream,
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "hash": event.hash.hex(),
        "data": msgspec.Raw(event.data),
        **({"taken_from": origin.job, "recorded_at": origin.at} if origin.job else {}),
    }


class Following:
    """Tells a story while its events come."""

    def __init__(self, out: OutputChannel, remit: Opened, identifier: str) -> None:
        self._out = out
        self._remit = remit
        self._identifier = identifier
        self._story = EventStory()
        self._teller = Teller(out, self._story.narrative(), "")
        self._shown: dict[str, StepNarrative] = {}

    async def run(self) -> None:
        """Tell everything, until the stream is closed."""
        streams = self._remit.service.streams
        async for event in streams.follow(streams.name(self._identifier)):
            await self._hear(event)
            self._out.flush()

    async def _hear(self, event: Event) -> None:
        first, taken, drifts = not self._story.events, len(self._story.recoveries), len(self._story.drifts)
        self._story.read([event])
        payload = k.decode(event.kind, event.data)
        if first:
            Teller(self._out, self._story.narrative(), "").head()
        elif isinstance(payload, k.JobCompleted | k.JobFailed | k.JobCancelled):
            state = payload.KIND.removeprefix("job_")
            Teller(self._out, await self._whole(), state).end()
        elif isinstance(payload, k.JobForked) and payload.shared:
            self._out.line(f"  fork of   {payload.job}")
            for shared in (await self._whole()).steps:
                if shared.taken_from:  # it stands in the other job's stream
                    self._shown[shared.step] = shared
                    self._teller.step(shared)
        elif len(self._story.recoveries) > taken:
            self._teller.recovery(self._story.recoveries[-1])
        elif len(self._story.drifts) > drifts:
            self._teller.drift(self._story.drifts[-1])
        elif step := getattr(payload, "step", ""):
            await self._step(step)

    async def _whole(self) -> Narrative:
        """The story with what stands in other streams."""
        return await self._remit.service.streams.narrative(self._identifier)

    async def _step(self, step: str) -> None:
        """Show the step, unless it is running or has not changed since it was shown."""
        narrative = self._story.told(step)
        if narrative is None or narrative.state == "running" or (narrative.state == "waiting" and not narrative.waits):
            return  # what it waits for comes with the next event
        if narrative.approval or any(waited.type == "human" for waited in narrative.waits):
            # Questions have streams of their own.
            narrative = next(
                (step_told for step_told in (await self._whole()).steps if step_told.step == step), narrative
            )
        before = self._shown.get(step)
        if before is None or (before.state, before.waits) != (narrative.state, narrative.waits):
            self._shown[step] = narrative
            self._teller.step(narrative)
