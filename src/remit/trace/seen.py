"""What is known of one step while the events of its job are read."""

from __future__ import annotations

from typing import NamedTuple

from remit.journal import kinds as k
from remit.trace.step import Attempt, QuestionRecord, Waited


class Try(NamedTuple):
    """An attempt as it was announced, and as it ended if that was recorded."""

    number: int
    since: int
    until: int | None = None
    finished: k.ToolInvocationFinished | None = None

    def told(self) -> Attempt:
        """The attempt as a story tells it."""
        if self.finished is None:
            return Attempt(number=self.number, started_at=self.since)
        error = self.finished.error
        return Attempt(
            number=self.number,
            started_at=self.since,
            ended_at=self.until,
            duration_us=self.finished.duration_us,
            outcome=self.finished.outcome,
            code=error.code if error else "",
            message=error.message if error else "",
            decided_by=self.finished.decided_by,
        )


class Seen:
    """What is known of one step while its events are read; a job may have ten thousand of them."""

    __slots__ = ("answer", "asked", "relayed", "since", "tries", "until", "waits")

    def __init__(self, at: int) -> None:
        self.since = self.until = at
        self.tries: tuple[Try, ...] = ()
        self.waits: dict[str, Waited] = {}
        self.asked: dict[str, QuestionRecord] = {}
        self.answer: k.CommandCommitted | None = None
        self.relayed: k.RequestRelayed | None = None

    @property
    def waiting(self) -> bool:
        """Whether it waits for something that has not come."""
        return any(waited.until is None for waited in self.waits.values())
