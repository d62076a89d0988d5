"""What an agent's job has recorded, as a conversation that can be gone on with: whole, and every call with a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.agents import words
from remit.agents.goal import LONG_RESULT
from remit.agents.helpers import RUN
from remit.agents.results import Results, text_of
from remit.agents.shortening import is_brief
from remit.canonical import digest, sha256
from remit.errors import NotCanonicalError
from remit.jobs.effects.outcomes import recorded_outcome
from remit.journal.kinds import CommandCommitted, CommandStarted, MessageKept, decode
from remit.models.arguments import InvalidArgumentsError, arguments_of
from remit.models.message import Message, ToolCall, ToolResult
from remit.models.message import decode as message_of
from remit.models.message import results as results_message
from remit.models.thread import START, tip_of

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.records import CallRecord
    from remit.jobs.state import History
    from remit.journal.event import Event
    from remit.journal.journal import Journal

_OWN: Final = 3
"""Parts of the steps at which an agent itself asks; agents that it has as tools ask at longer ones."""


class Prompts:
    """The newest prompt of a job, and the answer to it."""

    def __init__(self, journal: Journal, *, own: bool) -> None:
        """`own`: only what the job's recipe asks itself, and no summaries, as an agent's conversation."""
        self.answers: list[tuple[str, tuple[ToolCall, ...]]] = []
        """The calls of every answer, with the step of its question."""
        self._journal = journal
        self._own = own
        self._bodies: dict[str, bytes] = {}
        self._before: dict[str, tuple[str, str]] = {START: ("", "")}
        self._step, self._tip, self._answer = "", START, b""

    async def fold(self, events: Iterable[Event]) -> None:
        """Take events, in order."""
        for event in events:
            payload = decode(event.kind, event.data) if event.kind.startswith("command_") else None
            if isinstance(payload, CommandStarted):
                await self._asked(payload)
            elif isinstance(payload, CommandCommitted) and payload.error is None:
                await self._answered(payload)

    def messages(self) -> list[Message]:
        """The conversation, oldest first."""
        found = self._until(self._tip)
        return [*found, message_of(self._answer)] if self._answer else found

    async def _asked(self, started: CommandStarted) -> None:
        tip = started.after
        for one in started.added:
            tip = await self._add(tip, one)
        if self._own and (started.step.count(".") >= _OWN or is_brief(self._newest(tip))):
            return
        self._step, self._tip, self._answer = started.step, tip, b""

    async def _answered(self, committed: CommandCommitted) -> None:
        answer = await self._journal.value(committed.result, committed.result_blob) or b""
        self._bodies[sha256(answer)] = answer
        if committed.step == self._step:
            self._answer = answer
            self.answers.append((committed.step, message_of(answer).calls))

    async def _add(self, before: str, one: MessageKept) -> str:
        body = await self._journal.value(one.body, one.body_blob)
        if body is not None:
            self._bodies[one.digest] = body
        tip = tip_of(before, one.digest)
        self._before[tip] = (before, one.digest)
        return tip

    def _newest(self, tip: str) -> Message | None:
        _, newest = self._before[tip]
        return message_of(self._bodies[newest]) if newest else None

    def _until(self, tip: str) -> list[Message]:
        digests: list[str] = []
        while tip != START:
            tip, newest = self._before[tip]
            digests.append(newest)
        return [message_of(self._bodies[one]) for one in reversed(digests)]


class Transcript(NamedTuple):
    """A conversation."""

    messages: list[Message]
    results: dict[str, str]
    """Results that are cut in it, whole, by identifier."""


async def transcript_of(prompts: Prompts, history: History, journal: Journal, earlier: Mapping[str, str]) -> Transcript:
    """The conversation of a job that has ended; what its last answer asked for has a result, whatever its outcome.

    `earlier` are whole results that the job was given.
    """
    messages = prompts.messages()
    steps = _steps_of(prompts.answers, history)
    texts = dict(earlier)
    for call, step in steps.items():
        record = history.calls[step]
        if record.ended and (outcome := await recorded_outcome(record, journal)).ok:
            texts[call] = text_of(outcome.value)
    if messages and messages[-1].calls:
        kept = Results(LONG_RESULT)
        made = {call: history.calls[step] for call, step in steps.items()}
        last = [await _result(call, made.get(call.id), kept, journal) for call in messages[-1].calls]
        messages.append(results_message(*last))
    shown = {block.id: block.text for each in messages for block in each.blocks if isinstance(block, ToolResult)}
    return Transcript(messages, {call: text for call, text in texts.items() if shown.get(call, text) != text})


async def _result(call: ToolCall, record: CallRecord | None, kept: Results, journal: Journal) -> ToolResult:
    if record is None:
        text = words.UNKNOWN if call.name.startswith(RUN) else words.STOPPED
        return ToolResult(call.id, call.name, text, failed=True)
    if not record.ended:
        return ToolResult(call.id, call.name, words.UNKNOWN if record.unknown else words.STOPPED, failed=True)
    outcome: Outcome = await recorded_outcome(record, journal)
    text = kept.keep(call.id, outcome.value) if outcome.ok else words.failure(outcome)
    return ToolResult(call.id, call.name, text, failed=not outcome.ok)


def _steps_of(answers: Iterable[tuple[str, tuple[ToolCall, ...]]], history: History) -> dict[str, str]:
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
    """Whether a recorded call is the one that the model asked for."""
    at = record.started or record.refused
    if at is None or call.name.replace("__", ".") != at.tool_name:
        return False
    try:
        return digest(arguments_of(call.arguments)) == at.arguments_hash
    except (InvalidArgumentsError, NotCanonicalError):
        return False
