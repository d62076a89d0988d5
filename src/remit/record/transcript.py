"""The record of an agent's job as a conversation: the newest prompt, its answer, and results of its calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from remit.canonical import digest, sha256
from remit.errors import NotCanonicalError
from remit.gateway import model_text as words
from remit.jobs.effects.outcomes import recorded_outcome
from remit.journal.kinds import CommandCommitted, CommandStarted, MessageKept, decode
from remit.models.arguments import InvalidArgumentsError, arguments_of
from remit.models.message import Message, ToolCall, ToolResult
from remit.models.message import decode as message_of
from remit.models.shortening import is_brief
from remit.models.thread import EMPTY, START, Thread, tip_of
from remit.record.results import LONG_RESULT, RUN, Results

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.records import CallRecord
    from remit.jobs.state import History
    from remit.journal.event import Event
    from remit.journal.journal import Journal

Answers = list[tuple[str, tuple[ToolCall, ...]]]
"""The calls of every answer, with the step of its question."""
_OWN: Final = 3
"""Parts of the steps at which an agent itself asks; agents that it has as tools ask at longer ones."""


class Prompts:
    """The newest prompt of a job, and the answer to it."""

    def __init__(self, journal: Journal, *, own: bool, base: Thread = EMPTY) -> None:
        """`own`: only what the job's recipe asks itself, and no summaries, as an agent's conversation.

        `base` is the conversation of an earlier job that this one continues with.
        """
        self.answers: Answers = []
        """The calls of every answer, with the step of its question."""
        self._journal = journal
        self._own = own
        self._base = base
        self._bodies: dict[str, bytes] = {}
        self._before: dict[str, tuple[str, str]] = {START: ("", "")}
        self._asked_at: dict[str, str] = {}
        """The end of the conversation of each step's newest question, by step."""
        self._step, self._tip, self._answer = "", START, b""

    async def fold(self, events: Iterable[Event]) -> None:
        """Take events, in order."""
        for event in events:
            payload = decode(event.kind, event.data) if event.kind.startswith("command_") else None
            if isinstance(payload, CommandStarted):
                await self._asked(payload)
            elif isinstance(payload, CommandCommitted) and payload.error is None and payload.finish_reason != "empty":
                await self._answered(payload)

    @property
    def tip(self) -> str:
        """Digest of the conversation; empty: nothing was asked."""
        return tip_of(self._tip, sha256(self._answer)) if self._answer else self._tip

    @property
    def answer(self) -> Message | None:
        """The answer to the newest prompt, if it has come."""
        return message_of(self._answer) if self._answer else None

    def asked(self, step: str) -> Thread | None:
        """Return what the newest question of a step asked; None if it asked none."""
        return self.thread(self._asked_at[step]) if step in self._asked_at else None

    def messages(self) -> list[Message]:
        """The conversation, oldest first."""
        found = self.thread(self.tip)
        return found.messages() if found is not None else []

    def thread(self, tip: str) -> Thread | None:
        """The conversation up to a tip; None if that is not among what was folded."""
        digests: list[str] = []
        while tip not in {START, self._base.tip}:
            if tip not in self._before:
                return None
            tip, newest = self._before[tip]
            digests.append(newest)
        start = self._base if tip == self._base.tip else EMPTY
        return start.add(*(message_of(self._bodies[one]) for one in reversed(digests)))

    async def _asked(self, started: CommandStarted) -> None:
        tip = started.after
        for one in started.added:
            tip = await self._add(tip, one)
        self._asked_at[started.step] = tip
        if self._own and (started.step.count(".") >= _OWN or is_brief(self._newest(tip))):
            return
        self._step, self._tip, self._answer = started.step, tip, b""

    async def _answered(self, committed: CommandCommitted) -> None:
        answer = await self._journal.value(committed.result, committed.result_blob) or b""
        self._bodies[sha256(answer)] = answer
        if committed.step == self._step:
            self._answer = answer
            self._before[self.tip] = (self._tip, sha256(answer))
            self.answers.append((committed.step, message_of(answer).calls))

    async def _add(self, before: str, one: MessageKept) -> str:
        body = await self._journal.value(one.body, one.body_blob)
        if body is not None:
            self._bodies[one.digest] = body
        tip = tip_of(before, one.digest)
        self._before[tip] = (before, one.digest)
        return tip

    def _newest(self, tip: str) -> Message | None:
        _, newest = self._before.get(tip, ("", ""))
        return message_of(self._bodies[newest]) if newest else None


async def result_of(call: ToolCall, record: CallRecord | None, journal: Journal) -> ToolResult:
    """Return what a model is told of a call of a job that has ended, even if no one knows its outcome."""
    if record is None:
        text = words.UNKNOWN if call.name.startswith(RUN) else words.STOPPED
        return ToolResult(call.id, call.name, text, failed=True)
    if not record.ended:
        return ToolResult(call.id, call.name, words.UNKNOWN if record.unknown else words.STOPPED, failed=True)
    outcome: Outcome = await recorded_outcome(record, journal)
    text = Results(LONG_RESULT).keep(call.id, outcome.value) if outcome.ok else words.failure(outcome)
    return ToolResult(call.id, call.name, text, failed=not outcome.ok)


def steps_of(answers: Iterable[tuple[str, tuple[ToolCall, ...]]], history: History) -> dict[str, str]:
    """The step at which each call was made, by the call's identifier.

    An agent makes the calls of one answer after it and in their order, and leaves out those that it refuses, so a walk
    through all steps in their order finds each.
    """
    walk: list[tuple[list[tuple[int, str]], str, tuple[ToolCall, ...] | None]] = [
        *((_order(step), step, calls) for step, calls in answers),
        *((_order(step), step, None) for step in history.calls if step.count(".") < _OWN),
    ]
    wanted: list[ToolCall] = []
    found: dict[str, str] = {}
    for _, step, calls in sorted(walk, key=lambda each: each[0]):
        if calls is not None:
            wanted = list(calls)
            continue
        place = next((place for place, call in enumerate(wanted) if _is(call, history.calls[step])), None)
        if place is not None:
            found[wanted[place].id] = step
            del wanted[: place + 1]
    return found


def _order(step: str) -> list[tuple[int, str]]:
    """Steps in the order of the program: by number, not by text; keys come last."""
    return [(int(part), "") if part.isdigit() else (1 << 62, part) for part in step.split(".")]


def _is(call: ToolCall, record: CallRecord) -> bool:
    """Return whether a recorded call is the one that the model asked for."""
    at = record.started or record.refused
    if at is None or call.name.replace("__", ".") != at.tool_name:
        return False
    try:
        return digest(arguments_of(call.arguments)) == at.arguments_hash
    except (InvalidArgumentsError, NotCanonicalError):
        return False
