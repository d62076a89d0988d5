"""`remit trace --follow`: the story of a job or session as it happens, a step each time it stands or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.cli.story import Story as Teller
from remit.journal import kinds as k
from remit.record.story import Story

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.cli.output import Channel
    from remit.journal.event import Event
    from remit.record.step import StepNarrative


class Following:
    """Tells a story while its events come."""

    def __init__(self, out: Channel, remit: Opened, identifier: str) -> None:
        """Of the job or session `identifier`."""
        self._out = out
        self._remit = remit
        self._identifier = identifier
        self._story = Story()
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
            Teller(self._out, self._story.narrative(), state).end()
        elif len(self._story.recoveries) > taken:
            self._teller.recovery(self._story.recoveries[-1])
        elif len(self._story.drifts) > drifts:
            self._teller.drift(self._story.drifts[-1])
        elif step := getattr(payload, "step", ""):
            await self._step(step)

    async def _step(self, step: str) -> None:
        """Show the step, unless it is running or has not changed since it was shown."""
        told = self._story.told(step)
        if told is None or told.state == "running" or (told.state == "waiting" and not told.waits):
            return  # what it waits for comes with the next event
        if told.approval or any(waited.type == "human" for waited in told.waits):
            # Questions have streams of their own.
            whole = await self._remit.service.streams.narrative(self._identifier)
            told = next((one for one in whole.steps if one.step == step), told)
        before = self._shown.get(step)
        if before is None or (before.state, before.waits) != (told.state, told.waits):
            self._shown[step] = told
            self._teller.step(told)
