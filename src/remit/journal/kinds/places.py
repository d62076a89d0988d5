"""Events of a journal as a whole: copied, moved, rid of a subject's values or of old events. All of these are ours."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import Payload


class JournalCopied(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal`: this journal is a copy, and runs no jobs until it is activated."""

    KIND: ClassVar[str] = "journal_copied"
    source: str
    """The journal it is a copy of."""
    complete: bool = False
    """Whether everything was copied and proven; until then a copy is under way, or was broken off."""


class JournalMoved(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal`: the work goes on in another journal, and never here."""

    KIND: ClassVar[str] = "journal_moved"
    target: str
    """The journal in which it goes on."""
    final: bool = False
    """Whether it is never taken back: a shard whose copy was proven, and may run from then on."""


class JournalActivated(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal`: this copy, or this journal that had moved, runs jobs from now on."""

    KIND: ClassVar[str] = "journal_activated"
    by: str = ""
    """The person who activated it; empty: a copy that was completed."""


class JournalVouched(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `journal/seals`: someone vouched for heads whose seals could not be checked."""

    KIND: ClassVar[str] = "journal_vouched"
    key: str
    """The id of the key that heads are sealed under from now on."""
    former: str
    """The id of the key that they were sealed under, which was not here."""
    by: str = ""
    """The person who vouched."""


class SubjectErased(Payload, frozen=True, kw_only=True):
    """Ours, in a subject's own stream: every value of its streams was erased in this transaction."""

    KIND: ClassVar[str] = "subject_erased"
    subject: str
    """Digest of the subject's name, in hexadecimal."""
    streams: int = 0
    """The number of streams that it had."""
    values: int = 0
    """The number of values and pieces of evidence that were erased."""
    left: int = 0
    """The number of values that stand in events of an older Remit, and could not be erased."""
    by: str = ""
    reason: str = ""


class StreamPruned(Payload, frozen=True, kw_only=True):
    """Ours, in the stream itself: every event before this one was removed in this transaction."""

    KIND: ClassVar[str] = "stream_pruned"
    events: int
    """The number of events that were removed."""
    hash: str
    """The chain value of the last of them, in hexadecimal: this event continues it."""
    first_at: int
    """The time of the first of them, in microseconds since the Unix epoch."""
    last_at: int
    """The time of the last of them."""
    state: str = ""
    """The state that the head said."""
    code: str = ""
    """Why a job had failed."""
    package: str = ""
    """The own hash of the evidence package that was archived before; empty: none was."""
    values: int = 0
    """The number of values that were removed with the stream and those that belong to it; said at its root."""
    by: str = ""
    reason: str = ""
