"""Events of messages to people outside: what a target is told, and how each attempt ended. All of these are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import OwnDigest, Payload


class TargetAdded(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a target: a process with this `[[notify]]` table delivers to it from now on."""

    KIND: ClassVar[str] = "notify_target_added"
    target: str


class NotificationQueued(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a notification: a target is to be told of one event, once."""

    KIND: ClassVar[str] = "notification_queued"
    notification: str
    """Its identifier, which every attempt sends as the idempotency key."""
    target: str
    event: Literal["question", "expired", "stuck", "failed", "uncertain", "budget"]
    source: str
    """The stream that holds the event."""
    seq: int
    """The event's place in that stream."""
    digest: str = ""
    """The notification whose message tells of this event too; empty: it has a message of its own."""


class NotificationSent(Payload, frozen=True, kw_only=True):
    """Ours: the target took the message."""

    KIND: ClassVar[str] = "notification_sent"
    attempt: int
    answer: str = ""
    """The answer, in words."""
    digest: str = ""
    """The notification whose message told of it among others."""
    person: str = ""
    """The person whose turn it was; empty: it went to no one in particular."""
    delegate: str = ""
    """The person who got it in their place, as they were absent."""
    message: str = ""
    """The message, as its channel names it, if people can answer there."""
    shown: str = ""
    """Digest of the question as it was shown, if it was shown whole."""


class NotificationFailed(Payload, frozen=True, kw_only=True):
    """Ours: an attempt failed, or it is unknown whether the target took the message."""

    KIND: ClassVar[str] = "notification_failed"
    attempt: int
    reason: str
    again_at: int | None = None
    """When the next attempt is due, in microseconds since the Unix epoch; null: it was the last one."""


class AnswerReceived(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of an answer: someone pressed a button where they were told."""

    KIND: ClassVar[str] = "notify_answer_received"
    target: str
    notification: str
    confirmation: str
    digest: str
    decision: Literal["approve", "deny"]
    channel: str
    account: str
    """The account of the person who pressed it."""
    message: str
    """The message that it stands in."""
    reason: str = ""
    body: OwnDigest
    """Digest of what the channel sent, which is kept."""
    body_at: int = 0
    """When the channel says it sent that, in seconds since the Unix epoch."""


class AnswerSettled(Payload, frozen=True, kw_only=True):
    """Ours: what an answer did."""

    KIND: ClassVar[str] = "notify_answer_settled"
    state: str = ""
    """The question's state afterwards; empty: the answer did not count."""
    code: str = ""
    """The reason why it did not count."""
    text: str
    """The words that the person gets."""
    principal: str = ""
    """Whose account it is; empty: no one's that is known."""


class UpdateQueued(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of an update: a question ended, and its message is to say so."""

    KIND: ClassVar[str] = "notify_update_queued"
    target: str
    message: str
    """The message, as its channel names it."""
    confirmation: str


class PollingChanged(Payload, frozen=True, kw_only=True):
    """Ours, in the stream of a target: what people press there is not learnt any more, or again."""

    KIND: ClassVar[str] = "notify_polling_changed"
    reason: str = ""
    """The reason why it is not; empty: it is again."""


class PushSubscribed(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a device: its browser takes notices for a person."""

    KIND: ClassVar[str] = "push_subscribed"
    principal: str
    endpoint: str
    """The place where its push service takes them."""
    p256dh: str
    """The browser's public key, as browsers write it."""
    auth: str
    """The secret by which it knows what is for it: it opens nothing without the browser's own key."""
    key: str
    """The public key of this server that it was asked with."""
    device: str = ""
    """The browser, as it names itself."""


class PushEnded(Payload, frozen=True, kw_only=True):
    """Ours: a device takes notices no more."""

    KIND: ClassVar[str] = "push_ended"
    reason: str


class NotificationDropped(Payload, frozen=True, kw_only=True):
    """Ours: there is nothing left to tell, for instance because someone answered."""

    KIND: ClassVar[str] = "notification_dropped"
    reason: str
