"""Notifications as work of an engine: streams of targets are followed, streams of notifications delivered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from remit.clock import DAY, SECOND
from remit.engines.passes import FreeWork, ShortPass
from remit.errors import ChainBrokenError
from remit.jobs.end import PassEnd
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.kinds import Payload, decode
from remit.journal.scan import every_head
from remit.parts.notify.answers import is_answer
from remit.parts.notify.kinds import (
    AnswerReceived,
    NotificationDropped,
    NotificationFailed,
    NotificationQueued,
    NotificationSent,
    UpdateQueued,
)
from remit.parts.notify.notifications import DIGEST, KIND, LATE, Follower, digest_of, stream_of
from remit.parts.notify.occasion import identity_of, notification_of, read_occasion
from remit.parts.notify.people import Directory, PersonAddress, addressed
from remit.parts.notify.sender import message_of
from remit.parts.notify.target import quiet_until
from remit.redact import line

if TYPE_CHECKING:
    from remit.engines.port import StreamExecution
    from remit.journal.event import Event, Lease, StreamHead
    from remit.journal.journal import Journal
    from remit.parts.notify.channels import NotifyChannels
    from remit.parts.notify.occasion import Occasion
    from remit.parts.notify.sender import AttemptEnd, Notice, Sender
    from remit.parts.notify.target import NotifyTarget
    from remit.parts.notify.telegram import Presses


class NotificationWork(FreeWork):
    """The work of telling some targets. A process takes the streams of the targets that its settings name."""

    def __init__(
        self,
        journal: Journal,
        targets: Sequence[NotifyTarget],
        sender: Sender,
        console: str,
        channels: NotifyChannels | None = None,
        directory: Directory | None = None,
    ) -> None:
        super().__init__(KIND, journal)
        self._channels = channels
        self._directory = directory or Directory()
        self._targets = {target.name: target for target in targets}
        self._sender = sender
        self._console = console

    @property
    def routes(self) -> tuple[str, ...]:
        return tuple(self._targets)

    def take(self, lease: Lease, keeper: str) -> StreamExecution:  # noqa: ARG002 - the port's
        target = self._targets[lease.head.route]
        if lease.head.stream == stream_of(target.name):
            return Follower(self.journal, target, lease, self._presses(target))
        kind = Settlement if is_answer(lease.head.stream) else Delivery
        address = addressed(target, self._directory, self.journal.clock.now())
        if target.table and self._directory.absences:  # else each has one turn
            address = self._among_turns(target, address)
        return kind(self.journal, address, self._sender, lease, self._console, self._channels)

    def _among_turns(self, target: NotifyTarget, address: PersonAddress) -> PersonAddress:
        """Add the other turns of its table. Of those of one person at one time the first listed one tells."""
        now = self.journal.clock.now()
        turns = [each for each in self._targets.values() if each.table == target.table]
        first = [
            each.name
            for each in turns[: turns.index(target)]
            if each.after == target.after and addressed(each, self._directory, now).recipient == address.recipient
        ]
        return address._replace(others=tuple(each.name for each in turns if each is not target), first=tuple(first))

    def _presses(self, target: NotifyTarget) -> Presses | None:
        """Return what people press, if this target is the first with its bot: it is asked for once."""
        same = [other for other in self._targets.values() if other.telegram and other.bot == target.bot]
        return self._channels.presses(same) if self._channels is not None and same[:1] == [target] else None


_log: Final = logging.getLogger("remit.notify")
_FIRST_S: Final = 10
_LONGEST_S: Final = 3_600
PATIENCE: Final = DAY
"""Microseconds after the first failure in which it is tried again."""


def pause_s(attempt: int, asked_s: float) -> float:
    """Seconds from a failed attempt to the next: doubled each time, or as long as the target asks, an hour at most."""
    return min(max(_FIRST_S * 2.0 ** min(attempt - 1, 20), asked_s), _LONGEST_S)


class Delivery(ShortPass):
    """A pass over the stream of a notification: one attempt."""

    def __init__(
        self,
        journal: Journal,
        address: PersonAddress,
        sender: Sender,
        lease: Lease,
        console: str,
        channels: NotifyChannels | None = None,
    ) -> None:
        super().__init__(journal, lease, _log)
        self._channels = channels
        self._address, self._target = address, address.target
        self._sender = sender
        self._console = console

    async def go(self) -> PassEnd:
        events = await self.journal.read(self.head.stream)
        self.lease.writer.follows(events)
        queued = decode(events[0].kind, events[0].data)
        if not isinstance(queued, NotificationQueued):
            return await self._close(NotificationDropped(reason="a newer Remit queued it"), "dropped")
        if queued.digest and await self._is_carried(queued):
            return await self._park("gathered", self.journal.clock.now() + LATE)
        news = [News(self.head, queued, await read_occasion(self.journal, queued.source, queued.seq))]
        news += await self._gathered() if DIGEST in self.head.labels and not queued.digest else []
        news = [await self._once(item) for item in news]
        occasions = [item.occasion for item in news if item.occasion is not None and item.occasion.open]
        if not occasions:
            return await self._end(news, _settled, "dropped")
        untils = [until for until in map(self._quiet_until, occasions) if until is not None]
        waits = [item.until for item in news if item.until]
        if waits or len(untils) == len(occasions):
            return await self._park("waiting", max(waits) if waits else min(untils))
        answer = await self._sent(self._message(news, occasions))
        failures = [event.at for event in events if event.kind == NotificationFailed.KIND]
        if answer.ok:
            return await self._end(news, partial(self._told, answer, len(failures) + 1, len(occasions)), "sent")
        return await self._failed(news, answer, failures)

    async def _once(self, item: News) -> News:
        """Leave out what its person was told of in another turn: their own, or that of who is absent."""
        if item.occasion is None or not self._address.others:
            return item
        event = (await self.journal.read(item.queued.source))[item.queued.seq - 1]
        identity = await identity_of(self.journal, event, item.queued.event)
        until = 0
        for other in self._address.others:
            stream = stream_of(other, notification_of(other, identity))
            head = await self.journal.head(stream)
            events: list[Event] = []
            if head is not None:
                events = [each for each in await self.journal.left(stream) if each.seq <= head.seq]
                if not self._is_whole(head, events):
                    continue  # it is left alone, and tells no one any more
            payloads = [decode(row.kind, row.data) for row in events]
            sent = [payload for payload in payloads if isinstance(payload, NotificationSent)]
            if sent and (sent[-1].delegate or sent[-1].person) == self._address.recipient:
                return item._replace(occasion=None, reason=f"{self._address.recipient} was told as {other}")
            if other in self._address.first:
                until = max(until, self._ends_at(item, head))
        return item._replace(until=until)

    def _is_whole(self, head: StreamHead, events: Sequence[Event]) -> bool:
        try:
            self.journal.prove(head, events)
        except ChainBrokenError:
            return False
        return True

    def _ends_at(self, item: News, other: StreamHead | None) -> int:
        """Return when to look again whether another turn has told it; 0: it has ended, or never began."""
        now = self.journal.clock.now()
        if other is None:  # its target may not have read as far
            return now + _FIRST_S * SECOND if now < item.head.created_at + _FIRST_S * SECOND else 0
        due = other.due_at if other.lease_owner is None else None
        return 0 if other.closed else max(now + _FIRST_S * SECOND, due or 0)

    async def _failed(self, news: Sequence[News], answer: AttemptEnd, failures: Sequence[int]) -> PassEnd:
        """Record an attempt that failed, after others at these times, and when the next one is due."""
        attempt, now = len(failures) + 1, self.journal.clock.now()
        again_at = now + int(pause_s(attempt, answer.pause_s) * SECOND)
        _log.warning("%s, attempt %d: %s", self.head.stream, attempt, answer.words)
        failed = NotificationFailed(attempt=attempt, reason=answer.words, again_at=again_at)
        if again_at - (failures[0] if failures else now) > PATIENCE:
            return await self._end(news, lambda _: replace(failed, again_at=None), "failed")
        return await self._park("waiting", again_at, failed)

    async def _is_carried(self, queued: NotificationQueued) -> bool:
        """Return whether the message that is to tell of this event as well has yet to go."""
        carrier = await self.journal.head(stream_of(queued.target, queued.digest))
        return carrier is not None and not carrier.closed

    async def _gathered(self) -> list[News]:
        """Return what this message tells of beside its own event; a stream that is damaged is left alone."""
        notification = self.head.stream.rpartition("/")[2]
        query = HeadQuery(
            kind=KIND, prefix=f"{stream_of(self._target.name)}/", states=("gathered",), labels={DIGEST: notification}
        )
        gathered: list[News] = []
        async for head in every_head(self.journal, query):
            try:
                events = await self.journal.read(head.stream)
                self.journal.prove(head, events)
                queued = decode(events[0].kind, events[0].data)
                if isinstance(queued, NotificationQueued) and queued.digest == notification:
                    gathered.append(News(head, queued, await read_occasion(self.journal, queued.source, queued.seq)))
            except ChainBrokenError as error:
                _log.error("%s is left alone: %s", head.stream, error)
        return gathered

    def _quiet_until(self, occasion: Occasion) -> int | None:
        expires_at = occasion.expires_at if occasion.event == "question" else None
        return quiet_until(self._target.quiet, self.journal.clock.now(), level=occasion.level, expires_at=expires_at)

    def _message(self, news: Sequence[News], occasions: Sequence[Occasion]) -> Notice:
        """Return the message: about the event that is left, or about many."""
        if len(occasions) > 1:
            message = digest_of(news[0].queued.notification, occasions, self._console)
        else:
            notification = next(item.queued.notification for item in news if item.occasion is occasions[0])
            message = message_of(notification, occasions[0], details=self._target.details, console=self._console)
        absent = f" (for {line(self._target.person)}, who is absent)" if self._address.delegate else ""
        return replace(message, title=f"{message.title}{absent}")

    def _told(self, answer: AttemptEnd, attempt: int, number: int, item: News) -> Payload:
        """Return what is recorded of an event once the message was taken that tells of so many."""
        if item.occasion is None or not item.occasion.open:
            return _settled(item)
        sent = NotificationSent(
            attempt=attempt,
            answer=answer.words,
            person=self._target.person,
            delegate=self._address.delegate,
            message=answer.place,
            shown=answer.shown,
        )
        carrier = self.head.stream.rpartition("/")[2] if number > 1 else ""
        return replace(sent, digest=carrier, message="", shown="") if carrier else sent

    async def _sent(self, message: Notice) -> AttemptEnd:
        if self._target.answerable and self._channels is not None:
            return await self._channels.send(self._target, message)
        return await self._sender.send(self._target, message)

    async def _park(self, state: str, due_at: int, *payloads: Payload) -> PassEnd:
        await self.lease.release(*payloads, patch=HeadPatch(state=state, due_at=due_at))
        return PassEnd(how="parked")

    async def _close(self, end: Payload, state: str) -> PassEnd:
        await self.lease.release(end, patch=HeadPatch(state=state, due_at=None, closed=True))
        return PassEnd(how="failed" if state == "failed" else "completed")

    async def _end(self, news: Sequence[News], end: Callable[[News], Payload], state: str) -> PassEnd:
        """Close the streams of all that a message tells of, in one write."""
        ends = [(item.head, end(item)) for item in news]
        patches = [
            HeadPatch(state="dropped" if isinstance(payload, NotificationDropped) else state, due_at=None, closed=True)
            for _, payload in ends
        ]
        beside = [
            self.journal.writer(head.stream, KIND, head).draft(payload, patch=patch)
            for (head, payload), patch in zip(ends[1:], patches[1:], strict=True)
        ]
        await self.lease.release(ends[0][1], patch=patches[0], beside=beside)
        return PassEnd(how="failed" if state == "failed" else "completed")


class News(NamedTuple):
    """A notification, and what the journal says now about its event; None: no one is told of it."""

    head: StreamHead
    queued: NotificationQueued
    occasion: Occasion | None
    reason: str = "it was settled before"
    """The reason why no one is told of it."""
    until: int = 0
    """When to look again whether another turn has told it; 0: none may be about to."""


def _settled(item: News) -> Payload:
    return NotificationDropped(reason=item.reason)


class Settlement(Delivery):
    """A pass over the stream of an answer: the question is decided, and the person is told."""

    async def go(self) -> PassEnd:
        events = await self.journal.read(self.head.stream)
        self.lease.writer.follows(events)
        received = decode(events[0].kind, events[0].data)
        if isinstance(received, UpdateQueued) and self._channels is not None:
            answer = await self._channels.update(self._target, received)
            return await self._close(NotificationSent(attempt=1, answer=answer), "sent")
        if not isinstance(received, AnswerReceived) or self._channels is None:
            return await self._close(NotificationDropped(reason="a newer Remit kept it"), "dropped")
        outcome = await self._channels.settle(self._target, received)
        return await self._close(outcome, "sent" if outcome.state else "dropped")
