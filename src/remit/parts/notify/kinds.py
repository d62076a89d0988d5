"""Events of messages to people outside: what a target is told, and how each attempt ended. All of these are ours."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import Payload


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
    event: Literal["question", "expired", "stuck", "failed", "uncertain"]
    source: str
    """The stream that holds the event."""
    seq: int
    """The event's place in that stream."""


class NotificationSent(Payload, frozen=True, kw_only=True):
    """Ours: the target took the message."""

    KIND: ClassVar[str] = "notification_sent"
    attempt: int
    answer: str = ""
    """The answer, in words."""


class NotificationFailed(Payload, frozen=True, kw_only=True):
    """Ours: an attempt failed, or it is unknown whether the target took the message."""

    KIND: ClassVar[str] = "notification_failed"
    attempt: int
    reason: str
    again_at: int | None = None
    """When the next attempt is due, in microseconds since the Unix epoch; null: it was the last one."""


class NotificationDropped(Payload, frozen=True, kw_only=True):
    """Ours: there is nothing left to tell, for instance because someone answered."""

    KIND: ClassVar[str] = "notification_dropped"
    reason: str
