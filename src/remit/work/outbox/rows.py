"""The rows of the outbox: for each issue a stream that says which triggers are being written, and which stand there.

Who writes to an issue holds its stream under a lease, so that all processes write to it one after another. A trigger is
announced before it is posted, and confirmed with the comment's id after it; one that was announced and not confirmed
may stand in the thread already (contract: executors, "Forge recipe").
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from remit.journal import kinds as k
from remit.service.calls import Turns
from remit.work import kinds as w
from remit.work.references import IssueRef

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.leases import HeldLease

KIND: Final = "outbox"


class ThreadRows:
    """The rows of one issue, held by who writes to it."""

    def __init__(self, held: HeldLease, events: Sequence[Event]) -> None:
        self._held = held
        self.announced: set[str] = set()
        """Triggers that may stand in the thread."""
        self.confirmed: dict[str, str] = {}
        """The comment of each trigger that stands there, or stood."""
        for event in events:
            match k.decode(event.kind, event.data):
                case w.OutboxAnnounced(trigger=trigger):
                    self.announced.add(trigger)
                case w.OutboxConfirmed(trigger=trigger, reference=reference):
                    self.confirmed[trigger] = reference
                case _:
                    pass

    async def announce(self, trigger: str) -> None:
        """Record that a comment is about to be posted. Raise AppendConflictError if someone else writes by now."""
        await self._append(w.OutboxAnnounced(trigger=trigger))

    async def confirm(self, trigger: str, reference: str) -> None:
        """Record that a comment stands there. Raise AppendConflictError if someone else writes by now."""
        await self._append(w.OutboxConfirmed(trigger=trigger, reference=reference))

    async def _append(self, payload: k.Payload) -> None:
        await self._held.journal.append(self._held.writer, payload, synced=True)


class OutboxRows:
    """The rows of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @asynccontextmanager
    async def turn(self, issue: IssueRef) -> AsyncIterator[ThreadRows]:
        """Wait for the turn to write to an issue, and hold it: no other process writes there meanwhile."""
        stream = f"{KIND}/{issue.file_name}"
        async with Turns(self._journal).held(stream, KIND, w.OutboxOpened(issue_ref=str(issue))) as held:
            yield ThreadRows(held, await self._journal.read(stream))

    async def spent(self, stream: str, step: str, tools: Sequence[str]) -> int:
        """Return how many calls of these tools a job's stream announced before this step."""
        steps = set()
        for event in await self._journal.read(stream):
            payload = k.decode(event.kind, event.data)
            if isinstance(payload, k.ToolInvocationStarted) and payload.tool_name in tools:
                steps.add(payload.step)
        return len(steps - {step})
