"""Follows the journal for one target, and queues what it is to be told of.

The journal keeps how far it came as a fold (journal/folds.py). That only saves work: a notification is named by its
event and its target, so that what is read again is not queued again. A target that is new is told of what still waits,
and not of what failed or expired before.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from remit.errors import AppendConflictError, ChainBrokenError
from remit.jobs.ended import Ended
from remit.journal.event import Fold, HeadPatch
from remit.journal.leases import HeldLease
from remit.notify.kinds import NotificationQueued, TargetAdded
from remit.notify.occasion import KINDS, event_of, identity_of, notification_of, read_occasion
from remit.tasks import first

if TYPE_CHECKING:
    from remit.journal.event import Event, Lease
    from remit.journal.journal import Journal
    from remit.notify.target import Target

KIND: Final = "notification"
"""The kind of the streams of targets and of their notifications."""
_SPACING_S: Final = 0.1
"""The journal is read this often at most."""
_PAGE: Final = 500
_KEPT: Final = 1_000
"""So many positions may be read again after a crash, if none of them was told."""


def stream_of(target: str, notification: str = "") -> str:
    """The stream of a target, or of one of its notifications."""
    return f"notify/{target}/{notification}" if notification else f"notify/{target}"


async def add_target(journal: Journal, target: str) -> None:
    """Make the stream of a target, unless there is one."""
    if await journal.head(stream_of(target)) is None:
        patch = HeadPatch(state="pending", due_at=journal.clock.now(), route=target, title=target)
        with suppress(AppendConflictError):  # another process was faster
            await journal.create(stream_of(target), KIND, TargetAdded(target=target), patch=patch)


class Follower:
    """A pass over the stream of a target; it lasts until the process stops."""

    def __init__(self, journal: Journal, target: Target, lease: Lease) -> None:
        self.lease = HeldLease(journal, lease.head)
        self._began = lease.head.created_at
        self._journal = journal
        self._target = target
        self._fold = f"notify-{target.name}"
        self._kept = self._position = 0
        self._halted = asyncio.Event()

    async def run(self) -> Ended:
        """Follow until halted; a lost lease cancels this."""
        await first(self._follow(), self._halted.wait())
        await self.give_up()
        return Ended(how="parked")

    def news(self, wakes: int) -> None:
        """Nothing wakes it: it follows everything."""

    def halt(self) -> None:
        """Stop following."""
        self._halted.set()

    async def give_up(self) -> None:
        """Let another process follow at once."""
        with suppress(AppendConflictError):
            await self.lease.give_up(HeadPatch(due_at=self._journal.clock.now()))

    async def _follow(self) -> None:
        mark, more = 0, False
        while True:
            if not more:
                mark = await self._journal.heads_changed(mark)  # before the look, so that nothing is missed
            before = self._position
            more = await self.catch_up()
            if not more or self._position == before:
                await self._journal.clock.sleep(_SPACING_S)

    async def catch_up(self) -> bool:
        """Queue what the next page of the journal tells of; whether there is more."""
        if not self._position:
            kept = await self._journal.folds.read(self._fold)
            self._kept = self._position = kept[0].position if kept else 0
        page = await self._journal.scan(self._position, KINDS, _PAGE)
        queued = [await self._queue(placed.event) for placed in page.events]
        self._position = page.position
        if any(queued) or self._position - self._kept >= _KEPT:
            fold = Fold(name=self._fold, position=self._position, data=b"")
            if self._position > self._kept and await self._journal.folds.keep([fold], self._kept):
                self._kept = self._position
        return page.more

    async def _queue(self, event: Event) -> bool:
        """Queue one notification, if the target is to be told of the event; whether it is queued now."""
        try:
            return await self._queued(event)
        except ChainBrokenError:  # that stream is damaged, which `remit verify` tells; others go on
            return False

    async def _queued(self, event: Event) -> bool:
        name = event_of(event)
        if name not in self._target.events or (name in {"failed", "expired"} and event.at < self._began):
            return False
        occasion = await read_occasion(self._journal, event.stream, event.seq)
        if occasion is None or not occasion.open:
            return False
        fits = self._target.wants(
            tool=occasion.tool, level=occasion.level, recipe=occasion.recipe, labels=occasion.labels
        )
        if not fits:
            return False
        identity = await identity_of(self._journal, event, name)
        notification = notification_of(self._target.name, identity)
        stream = stream_of(self._target.name, notification)
        if await self._journal.head(stream) is not None:
            return False
        queued = NotificationQueued(
            notification=notification, target=self._target.name, event=name, source=event.stream, seq=event.seq
        )
        patch = HeadPatch(
            state="pending",
            due_at=event.at + self._target.delay,
            route=self._target.name,
            title=f"{name} {occasion.confirmation or occasion.job}",
        )
        try:
            await self._journal.create(stream, KIND, queued, patch=patch)
        except AppendConflictError:
            return False
        return True
