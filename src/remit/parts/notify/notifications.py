"""The targets of this process: the state of their notifications, and a test of each.

Follows the journal for one target, and queues what it is to be told of.

The journal keeps how far it came as a fold (journal/folds.py). That only saves work: a notification is named by its
event and its target, so that what is read again is not queued again. A target that is new is told of what still waits,
and not of what failed or expired before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.clock import SECOND, isoformat
from remit.codes import Code
from remit.engines.passes import ShortPass
from remit.errors import AppendConflictError, ChainBrokenError, NotFoundError
from remit.ids import new_id
from remit.jobs.end import PassEnd
from remit.journal.event import HeadPatch, HeadQuery, JournalFold
from remit.journal.kinds import ConfirmationDecided, decode
from remit.nearest import did_you_mean
from remit.parts.notify.answers import is_answer
from remit.parts.notify.kinds import (
    NotificationDropped,
    NotificationFailed,
    NotificationQueued,
    NotificationSent,
    PollingChanged,
    TargetAdded,
    UpdateQueued,
)
from remit.parts.notify.occasion import KINDS, event_of, identity_of, notification_of, read_occasion
from remit.parts.notify.people import Directory, addressed
from remit.parts.notify.sender import Notice, sample, title_of
from remit.parts.notify.target import quiet_until
from remit.tasks import first

if TYPE_CHECKING:
    from remit.journal.event import Event, Lease, StreamHead
    from remit.journal.journal import Journal
    from remit.parts.notify.occasion import Occasion
    from remit.parts.notify.sender import AttemptEnd, Sender
    from remit.parts.notify.target import EventName, NotifyTarget
    from remit.parts.notify.telegram import Presses

DIGEST: Final = "digest"
"""The label with the notification that carries one."""
TOGETHER: Final = 30 * SECOND
"""Microseconds within which messages count as of one time."""
LATE: Final = 3_600 * SECOND
"""So long after its carrier's time a message looks whether it was carried."""
_MOST: Final = 500
_LINES: Final = 10
_WORDS: Final[dict[EventName, tuple[str, str]]] = {
    "question": ("1 question waits for an answer", "{} questions wait for an answer"),
    "uncertain": ("1 outcome is unknown", "{} outcomes are unknown"),
    "stuck": ("1 job is stuck", "{} jobs are stuck"),
    "failed": ("1 job failed", "{} jobs failed"),
    "expired": ("1 question expired", "{} questions expired"),
    "budget": ("1 level of a budget is reached", "{} levels of budgets are reached"),
}


class _Carrier(msgspec.Struct):
    notification: str
    due: int
    carried: int = 0


class Rhythm:
    """Which of a target's messages go together.

    So many go one by one; what comes beyond within 30 seconds is gathered. The first of those carries the others, whose
    streams name it: it is sent when the time is over, and one write records that for all of them. One that was not
    carried after all is sent by itself later.
    """

    def __init__(self, singles: int) -> None:
        self._singles = singles
        self._dues: list[int] = []
        self._carriers: list[_Carrier] = []

    def place(self, notification: str, due: int, now: int) -> tuple[int, str]:
        """Return when a message goes that is due then, and what carries it: itself, if it carries others; or nothing.

        All times are microseconds since the Unix epoch.
        """
        self._dues = [at for at in self._dues if at > now - TOGETHER]
        self._carriers = [carrier for carrier in self._carriers if carrier.due > now - TOGETHER]
        for carrier in self._carriers:
            if now < carrier.due and due <= carrier.due <= due + TOGETHER and carrier.carried < _MOST:
                carrier.carried += 1
                return carrier.due + LATE, carrier.notification
        near = [at for at in self._dues if abs(at - due) < TOGETHER]
        if len(near) < self._singles and not any(abs(carrier.due - due) < TOGETHER for carrier in self._carriers):
            self._dues.append(due)
            return due, ""
        self._carriers.append(_Carrier(notification, due + TOGETHER))
        return due + TOGETHER, notification

    def forget(self, notification: str) -> None:
        """Let nothing more be carried by a notification, since another process queued it."""
        self._carriers = [carrier for carrier in self._carriers if carrier.notification != notification]


def digest_of(notification: str, occasions: Sequence[Occasion], console: str) -> Notice:
    """Return the message about many events; `console` is the base URL of the pages, empty if there is none."""
    events = Counter(occasion.event for occasion in occasions)
    counts = [
        singular if events[event] == 1 else plural.format(events[event])
        for event, (singular, plural) in _WORDS.items()
        if events[event]
    ]
    about = Counter(
        title_of(occasion) + (f" ({occasion.recipe})" if occasion.recipe and occasion.tool else "")
        for occasion in occasions
    ).most_common()
    rest = sum(number for _, number in about[_LINES:])
    asks = bool(events["question"])
    return Notice(
        id=notification,
        event=DIGEST,
        at=isoformat(max(occasion.at for occasion in occasions)),
        title=", ".join(counts),
        url=f"{console.rstrip('/')}/{'inbox' if asks else 'jobs'}" if console else "",
        command="remit confirm" if asks else "remit jobs",
        about=(*(f"{what}: {number}" for what, number in about[:_LINES]), *([f"{rest} more"] if rest else [])),
    )


_log: Final = logging.getLogger("remit.notify")
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


def polling_failure(events: Sequence[Event]) -> str:
    """Return why what people press in a target is not learnt; empty: it is."""
    changes = [decode(event.kind, event.data) for event in events if event.kind == PollingChanged.KIND]
    return changes[-1].reason if changes and isinstance(changes[-1], PollingChanged) else ""


class Follower(ShortPass):
    """A pass over the stream of a target; it lasts until the process stops."""

    def __init__(self, journal: Journal, target: NotifyTarget, lease: Lease, presses: Presses | None = None) -> None:
        super().__init__(journal, lease, _log)
        self._rhythm = Rhythm(target.digest)
        self._target = target
        self._presses = presses
        self._fold = f"notify-{target.name}"
        self._saved = self._position = 0
        self._halted = asyncio.Event()

    async def run(self) -> PassEnd:
        """Follow until halted; a lost lease cancels this."""
        listening = [self._presses.run(self.polled, await self._failure())] if self._presses is not None else []
        await first(self._follow(), self._halted.wait(), *listening)
        await self.give_up()
        return PassEnd(how="parked")

    def halt(self) -> None:
        """Stop following."""
        self._halted.set()

    async def give_up(self) -> None:
        """Let another process follow at once."""
        with suppress(AppendConflictError):
            await super().give_up()

    async def polled(self, reason: str) -> None:
        """Record that what people press is not learnt any more, or again."""
        await self.journal.append(self.lease.writer, PollingChanged(reason=reason), synced=False)

    async def _failure(self) -> str:
        return polling_failure(await self.journal.read(self.head.stream))

    async def _follow(self) -> None:
        mark, more = 0, False
        while True:
            if not more:
                mark = await self.journal.heads_changed(mark)  # before the look, so that nothing is missed
            before = self._position
            more = await self.catch_up()
            if not more or self._position == before:
                await self.journal.clock.sleep(_SPACING_S)

    async def catch_up(self) -> bool:
        """Queue what the next page of the journal tells of; whether there is more."""
        if not self._position:
            folds = await self.journal.folds.read(self._fold)
            self._saved = self._position = folds[0].position if folds else 0
        page = await self.journal.scan(self._position, KINDS, _PAGE)
        queued = [await self._queue(placed.event) for placed in page.events]
        self._position = page.position
        if any(queued) or self._position - self._saved >= _KEPT:
            fold = JournalFold(name=self._fold, position=self._position, data=b"")
            if self._position > self._saved and await self.journal.folds.keep([fold], self._saved):
                self._saved = self._position
        return page.more

    async def _queue(self, event: Event) -> bool:
        """Queue one notification, if the target is to be told of the event; whether it is queued now."""
        try:
            return await self._queued(event)
        except ChainBrokenError:  # that stream is damaged, which `remit verify` tells; others go on
            return False

    async def _queued(self, event: Event) -> bool:
        if self._target.answerable and event.kind == ConfirmationDecided.KIND:
            await self._update(event)
        name = event_of(event)
        if name not in self._target.events or (
            name in {"failed", "expired", "budget"} and event.at < self.head.created_at
        ):
            return False
        occasion = await read_occasion(self.journal, event.stream, event.seq)
        if occasion is None or not occasion.open:
            return False
        fits = self._target.wants(
            tool=occasion.tool, level=occasion.level, recipe=occasion.recipe, labels=occasion.labels
        )
        if not fits:
            return False
        identity = await identity_of(self.journal, event, name)
        notification = notification_of(self._target.name, identity)
        stream = stream_of(self._target.name, notification)
        if await self.journal.head(stream) is not None:
            return False
        due, digest = self._place(notification, event.at, occasion)
        queued = NotificationQueued(
            notification=notification,
            target=self._target.name,
            event=name,
            source=event.stream,
            seq=event.seq,
            digest="" if digest == notification else digest,
        )
        patch = HeadPatch(
            state="gathered" if queued.digest else "pending",
            due_at=due,
            route=self._target.name,
            title=f"{name} {occasion.confirmation or occasion.job}",
            labels={DIGEST: digest} if digest else {},
        )
        try:
            await self.journal.create(stream, KIND, queued, patch=patch)
        except AppendConflictError:
            self._rhythm.forget(notification)
            return False
        return True

    def _place(self, notification: str, at: int, occasion: Occasion) -> tuple[int, str]:
        """Return when a message goes about an event of that time, and what carries it."""
        now = self.journal.clock.now()
        due = max(at + self._target.delay, now)
        expires_at = occasion.expires_at if occasion.event == "question" else None
        quiet = quiet_until(self._target.quiet, due, level=occasion.level, expires_at=expires_at)
        return self._rhythm.place(notification, quiet or due, now)

    async def _update(self, event: Event) -> None:
        """Queue that a message says how its question ended, once it has."""
        head = await self.journal.head(event.stream)
        notification = notification_of(self._target.name, f"{event.stream} 1")
        if (
            head is None
            or head.state == "pending"
            or await self.journal.head(stream_of(self._target.name, notification)) is None
        ):
            return
        payloads = [
            decode(each.kind, each.data) for each in await self.journal.left(stream_of(self._target.name, notification))
        ]
        sent = next(
            (payload for payload in payloads if isinstance(payload, NotificationSent) and payload.message), None
        )
        if sent is None:
            return
        update = UpdateQueued(
            target=self._target.name, message=sent.message, confirmation=event.stream.rpartition("/")[2]
        )
        patch = HeadPatch(
            state="pending", due_at=event.at, route=self._target.name, title=f"update {update.confirmation}"
        )
        with suppress(AppendConflictError):  # it is queued already
            await self.journal.create(stream_of(self._target.name, f"answer/{notification}"), KIND, update, patch=patch)


_LISTED: Final = 1_000
"""Notifications of a target that are counted."""
_STATES: Final = {"pending": "waiting", "running": "waiting", "gathered": "waiting"}
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
    fails: str
    """Failure of the newest message that was tried; empty: it was taken."""
    deaf: str
    """The reason why what people press is not learnt; empty: it is, or there is nothing to press."""
    last: tuple[NotificationRow, ...]
    """The newest, newest first."""


class TargetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back of a test message."""

    target: str
    ok: bool
    said: str


class Notifications:
    """The targets that the settings name, over one journal."""

    def __init__(
        self,
        journal: Journal,
        targets: Sequence[NotifyTarget],
        sender: Sender,
        console: str,
        directory: Directory | None = None,
    ) -> None:
        self._directory = directory or Directory()
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

    async def _tested(self, target: NotifyTarget) -> AttemptEnd:
        now = self._journal.clock.now()
        address = addressed(target, self._directory, now)
        return await self._sender.send(address.target, sample(new_id("n"), now, self._console))

    async def _view(self, target: NotifyTarget, limit: int) -> TargetView:
        query = HeadQuery(kind=KIND, prefix=f"{stream_of(target.name)}/", limit=_LISTED)
        heads = [head for head in await self._journal.heads(query) if not is_answer(head.stream)]
        states = [_STATES.get(head.state, head.state) for head in heads]
        tried = next((head for head in heads if head.seq > 1 and head.state != "dropped"), None)
        fails = "" if tried is None or tried.state == "sent" else (await self._row(tried)).said
        return TargetView(
            target=target.name,
            where=target.where,
            on=target.events,
            after=target.after,
            sent=states.count("sent"),
            waiting=states.count("waiting"),
            failing=sum(not head.closed and head.seq > 1 for head in heads),
            failed=states.count("failed"),
            fails=fails,
            deaf=polling_failure(await self._journal.read(stream_of(target.name)) if target.telegram else ()),
            last=tuple([await self._row(head) for head in heads[:limit]]),
        )

    async def _row(self, head: StreamHead) -> NotificationRow:
        events, words, payloads = await self._journal.left(head.stream), "", list[Any]()
        try:
            payloads = [decode(event.kind, event.data) for event in events]
        except ChainBrokenError as error:
            words = error.message
        attempts = [payload for payload in payloads if isinstance(payload, NotificationSent | NotificationFailed)]
        match payloads[-1:]:
            case [NotificationSent(answer=text) | NotificationFailed(reason=text) | NotificationDropped(reason=text)]:
                words = text
            case _:
                pass
        return NotificationRow(
            notification=head.stream.rpartition("/")[2],
            event=next((payload.event for payload in payloads if isinstance(payload, NotificationQueued)), ""),
            state=_STATES.get(head.state, head.state),
            about=head.title.partition(" ")[2],
            queued_at=head.created_at,
            attempts=len(attempts),
            said=words,
            due_at=head.due_at,
        )


def _result(target: NotifyTarget, answer: AttemptEnd) -> TargetAnswer:
    return TargetAnswer(target=target.name, ok=answer.ok, said=answer.words)
