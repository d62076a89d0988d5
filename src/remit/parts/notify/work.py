"""Notifications as work of an engine: streams of targets are followed, streams of notifications delivered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from remit.clock import DAY, SECOND
from remit.errors import AppendConflictError, ChainBrokenError
from remit.jobs.end import Ended
from remit.journal.event import HeadPatch
from remit.journal.kinds import Payload, decode
from remit.journal.leases import HeldLease
from remit.parts.notify.answers import is_answer
from remit.parts.notify.kinds import (
    AnswerReceived,
    NotificationDropped,
    NotificationFailed,
    NotificationQueued,
    NotificationSent,
    UpdateQueued,
)
from remit.parts.notify.notifications import KIND, Follower, stream_of
from remit.parts.notify.occasion import read_occasion
from remit.parts.notify.quiet import quiet_until
from remit.parts.notify.sender import message_of

if TYPE_CHECKING:
    from remit.engines.port import Execution
    from remit.journal.event import Lease
    from remit.journal.journal import Journal
    from remit.parts.notify.channels import Channels
    from remit.parts.notify.sender import Answer, Message, Sender
    from remit.parts.notify.target import Target
    from remit.parts.notify.telegram import Presses


class NotificationWork:
    """The work of telling some targets. A process takes the streams of the targets that its settings name."""

    def __init__(
        self,
        journal: Journal,
        targets: Sequence[Target],
        sender: Sender,
        console: str,
        channels: Channels | None = None,
    ) -> None:
        self._journal = journal
        self._channels = channels
        self._targets = {target.name: target for target in targets}
        self._sender = sender
        self._console = console

    @property
    def kind(self) -> str:
        return KIND

    @property
    def journal(self) -> Journal:
        return self._journal

    @property
    def routes(self) -> tuple[str, ...]:
        return tuple(self._targets)

    @property
    def code(self) -> dict[str, tuple[str, ...]]:
        return {}

    async def late_routes(self) -> tuple[str, ...]:
        return ()

    async def left_routes(self, owner: str, served: Collection[str]) -> dict[str, str]:  # noqa: ARG002 - the port's
        return {}

    async def let_go(self, stream: str, owner: str) -> None:
        """Nothing is kept for one process."""

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002 - the port's
        return lambda: None

    def take(self, lease: Lease, keeper: str) -> Execution:  # noqa: ARG002 - the port's
        target = self._targets[lease.head.route]
        if lease.head.stream == stream_of(target.name):
            return Follower(self._journal, target, lease, self._presses(target))
        kind = Settlement if is_answer(lease.head.stream) else Delivery
        return kind(self._journal, target, self._sender, lease, self._console, self._channels)

    def _presses(self, target: Target) -> Presses | None:
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


class Delivery:
    """A pass over the stream of a notification: one attempt."""

    def __init__(
        self,
        journal: Journal,
        target: Target,
        sender: Sender,
        lease: Lease,
        console: str,
        channels: Channels | None = None,
    ) -> None:
        self._channels = channels
        self.lease = HeldLease(journal, lease.head)
        self._stream = lease.head.stream
        self._journal = journal
        self._target = target
        self._sender = sender
        self._console = console

    async def run(self) -> Ended:
        """Make one attempt, unless there is nothing left to tell."""
        try:
            return await self._attempt()
        except AppendConflictError:
            return Ended(how="lost")
        except ChainBrokenError as error:
            _log.error("%s is left alone: %s", self._stream, error)
            await self.lease.release(patch=HeadPatch(due_at=None))
            return Ended(how="failed")

    def news(self, wakes: int) -> None:
        """Nothing wakes it: each attempt looks whether there is something to tell."""

    def halt(self) -> None:
        """Let the attempt under way end."""

    async def give_up(self) -> None:
        """Let another process make the attempt at once."""
        await self.lease.give_up(HeadPatch(state="pending", due_at=self._journal.clock.now()))

    async def _attempt(self) -> Ended:
        events = await self._journal.read(self._stream)
        self.lease.writer.follows(events)
        payloads = [decode(event.kind, event.data) for event in events]
        queued = payloads[0]
        if not isinstance(queued, NotificationQueued):
            return await self._close(NotificationDropped(reason="a newer Remit queued it"), "dropped")
        failures = [event for event in events if event.kind == NotificationFailed.KIND]
        occasion = await read_occasion(self._journal, queued.source, queued.seq)
        if occasion is None or not occasion.open:
            return await self._close(NotificationDropped(reason="it was settled before"), "dropped")
        expires_at = occasion.expires_at if occasion.event == "question" else None
        now = self._journal.clock.now()
        until = quiet_until(self._target.quiet, now, level=occasion.level, expires_at=expires_at)
        if until is not None:
            await self.lease.release(patch=HeadPatch(state="waiting", due_at=until))
            return Ended(how="parked")
        message = message_of(queued.notification, occasion, details=self._target.details, console=self._console)
        answer = await self._sent(message)
        attempt = len(failures) + 1
        if answer.ok:
            sent = NotificationSent(attempt=attempt, answer=answer.words, message=answer.place, shown=answer.shown)
            return await self._close(sent, "sent")
        now = self._journal.clock.now()
        again_at = now + int(pause_s(attempt, answer.pause_s) * SECOND)
        first = failures[0].at if failures else now
        _log.warning("%s, attempt %d: %s", self._stream, attempt, answer.words)
        if again_at - first > PATIENCE:
            return await self._close(NotificationFailed(attempt=attempt, reason=answer.words), "failed")
        failed = NotificationFailed(attempt=attempt, reason=answer.words, again_at=again_at)
        await self.lease.release(failed, patch=HeadPatch(state="waiting", due_at=again_at))
        return Ended(how="parked")

    async def _sent(self, message: Message) -> Answer:
        if self._target.answerable and self._channels is not None:
            return await self._channels.send(self._target, message)
        return await self._sender.send(self._target, message)

    async def _close(self, end: Payload, state: str) -> Ended:
        await self.lease.release(end, patch=HeadPatch(state=state, due_at=None, closed=True))
        return Ended(how="failed" if state == "failed" else "completed")


class Settlement(Delivery):
    """A pass over the stream of an answer: the question is decided, and the person is told."""

    async def _attempt(self) -> Ended:
        events = await self._journal.read(self._stream)
        self.lease.writer.follows(events)
        received = decode(events[0].kind, events[0].data)
        if isinstance(received, UpdateQueued) and self._channels is not None:
            answer = await self._channels.update(self._target, received)
            return await self._close(NotificationSent(attempt=1, answer=answer), "sent")
        if not isinstance(received, AnswerReceived) or self._channels is None:
            return await self._close(NotificationDropped(reason="a newer Remit kept it"), "dropped")
        outcome = await self._channels.settle(self._target, received)
        return await self._close(outcome, "sent" if outcome.state else "dropped")
