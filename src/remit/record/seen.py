"""What is known of one step while the events of its job are read."""

from __future__ import annotations

from typing import NamedTuple

from remit.journal import kinds as k
from remit.record.step import Attempt, QuestionRecord, Waited


class Try(NamedTuple):
    """An attempt as it was announced, and as it ended if that was recorded."""

    number: int
    since: int
    until: int | None = None
    finished: k.ToolInvocationFinished | k.CommandCommitted | None = None

    def told(self) -> Attempt:
        """The attempt as a story tells it."""
        if self.finished is None:
            return Attempt(number=self.number, started_at=self.since)
        finished, error = self.finished, self.finished.error
        of_tool = finished if isinstance(finished, k.ToolInvocationFinished) else None
        return Attempt(
            number=self.number,
            started_at=self.since,
            ended_at=self.until,
            duration_us=of_tool.duration_us if of_tool is not None else round(finished.duration_ms * 1_000),
            outcome=finished.outcome,
            code=error.code if error else "",
            message=error.message if error else "",
            cause=error.cause if error else "",
            decided_by=of_tool.decided_by if of_tool is not None else "",
            again_ms=finished.again_ms if isinstance(finished, k.CommandCommitted) else None,
        )


class Seen:
    """What is known of one step while its events are read; a job may have ten thousand of them."""

    __slots__ = ("asked", "relayed", "since", "taken_from", "tries", "until", "waits")

    def __init__(self, at: int, taken_from: str = "") -> None:
        self.since = self.until = at
        self.taken_from = taken_from
        self.tries: tuple[Try, ...] = ()
        self.waits: dict[str, Waited] = {}
        self.asked: dict[str, QuestionRecord] = {}
        self.relayed: k.RequestRelayed | None = None

    @property
    def waiting(self) -> bool:
        """Whether it waits for something that has not come; other code is nothing that a step waits for."""
        return any(waited.until is None and not waited.stuck for waited in self.waits.values())
