"""The targets of this process: the state of their notifications, and a test of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError
from remit.ids import new_id
from remit.journal.event import HeadQuery
from remit.journal.kinds import decode
from remit.nearest import did_you_mean
from remit.notify.following import KIND, stream_of
from remit.notify.kinds import NotificationDropped, NotificationFailed, NotificationQueued, NotificationSent
from remit.notify.message import sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.journal.event import Head
    from remit.journal.journal import Journal
    from remit.notify.sender import Answer, Sender
    from remit.notify.target import Target

_LISTED: Final = 1_000
"""Notifications of a target that are counted."""
_STATES: Final = {"pending": "waiting", "running": "waiting"}
"""The words for a recorded state."""


class NotificationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One notification."""

    notification: str
    event: str
    state: str
    """`waiting`, `sent`, `dropped` or `failed`."""
    about: str
    """The question or the job."""
    queued_at: int
    """Microseconds since the Unix epoch, as all times here."""
    attempts: int
    """The number that were made."""
    said: str
    """The answer to the newest attempt, or why there was none."""
    due_at: int | None
    """When the next attempt is due."""


class TargetView(msgspec.Struct, frozen=True, kw_only=True):
    """A target, and the state of its newest notifications."""

    target: str
    where: str
    on: tuple[str, ...]
    after: str
    sent: int
    waiting: int
    failing: int
    """Those of the waiting that failed at least once."""
    failed: int
    """Those that were given up."""
    last: tuple[NotificationRow, ...]
    """The newest, newest first."""

    @property
    def fails(self) -> str:
        """Return what goes wrong with the newest attempt; empty: nothing."""
        tried = next((row for row in self.last if row.attempts), None)
        return tried.said if tried is not None and tried.state in {"waiting", "failed"} else ""


class TargetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back of a test message."""

    target: str
    ok: bool
    said: str


class Notifications:
    """The targets that the settings name, over one journal."""

    def __init__(self, journal: Journal, targets: Sequence[Target], sender: Sender, console: str) -> None:
        self._journal = journal
        self._targets = {target.name: target for target in targets}
        self._sender = sender
        self._console = console

    async def views(self, *, limit: int = 5) -> list[TargetView]:
        """Every target, with at most `limit` of its newest notifications."""
        return [await self._view(target, limit) for target in self._targets.values()]

    async def test(self, name: str = "") -> list[TargetAnswer]:
        """Send a test message to one target, or to all; nothing of it is recorded. Raises NotFoundError."""
        if name and name not in self._targets:
            hint = did_you_mean(name, self._targets) or "`remit notify list` shows the targets."
            raise NotFoundError(f"no [[notify]] table is called {name}", code=Code.TARGET_NOT_FOUND, remedy=hint)
        chosen = [self._targets[name]] if name else list(self._targets.values())
        return [_result(target, await self._tested(target)) for target in chosen]

    async def _tested(self, target: Target) -> Answer:
        return await self._sender.send(target, sample(new_id("n"), self._journal.clock.now(), self._console))

    async def _view(self, target: Target, limit: int) -> TargetView:
        query = HeadQuery(kind=KIND, prefix=f"{stream_of(target.name)}/", limit=_LISTED)
        heads = await self._journal.heads(query)
        states = [_STATES.get(head.state, head.state) for head in heads]
        return TargetView(
            target=target.name,
            where=target.where,
            on=target.events,
            after=target.after,
            sent=states.count("sent"),
            waiting=states.count("waiting"),
            failing=sum(not head.closed and head.seq > 1 for head in heads),
            failed=states.count("failed"),
            last=tuple([await self._row(head) for head in heads[:limit]]),
        )

    async def _row(self, head: Head) -> NotificationRow:
        events = await self._journal.read(head.stream)
        payloads = [decode(event.kind, event.data) for event in events]
        attempts = [one for one in payloads if isinstance(one, NotificationSent | NotificationFailed)]
        said = ""
        match payloads[-1]:
            case NotificationSent(answer=text) | NotificationFailed(reason=text) | NotificationDropped(reason=text):
                said = text
            case _:
                pass
        queued = payloads[0]
        return NotificationRow(
            notification=head.stream.rpartition("/")[2],
            event=queued.event if isinstance(queued, NotificationQueued) else "",
            state=_STATES.get(head.state, head.state),
            about=head.title.partition(" ")[2],
            queued_at=head.created_at,
            attempts=len(attempts),
            said=said,
            due_at=head.due_at,
        )


def _result(target: Target, answer: Answer) -> TargetAnswer:
    return TargetAnswer(target=target.name, ok=answer.ok, said=answer.words)
