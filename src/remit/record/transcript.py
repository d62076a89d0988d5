"""The record of an agent's job as a conversation: the newest prompt, its answer, and results of its calls.

A conversation that goes on in another job, which refers to it and does not hold it again.

So a thousand jobs that continue each other record what one job of a thousand turns does. The reference names the job
that recorded the conversation, and the digest of all of its messages.

Results of tools as a model reads them: whole if they are short, else their beginning and how to read on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.canonical import digest, sha256
from remit.codes import Code
from remit.errors import NotCanonicalError, StateError
from remit.gateway import outcome as words
from remit.gateway.outcome import text_of
from remit.jobs.effects.outcomes import recorded_outcome
from remit.jobs.state import JobHistory, stream_of
from remit.journal.kinds import CommandCommitted, CommandStarted, MessageKept, decode
from remit.journal.lineage import whole
from remit.models.arguments import InvalidArgumentsError, arguments_of
from remit.models.message import Message, ToolCall, ToolMessage, digest_of, results
from remit.models.message import decode as message_of
from remit.models.prompt import ToolSpec
from remit.models.thread import EMPTY, START, Thread, is_brief, tip_of
from remit.regex import regex

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.state import CallRecord
    from remit.journal.event import Event
    from remit.journal.journal import Journal


LONG_RESULT: Final = 16_000
"""Characters of a tool's result that a model gets at once."""
RUN: Final = "run__"
"""The beginning of names of recipes that are tools of an agent, as models see them."""
READ_MORE: Final = "agent__read_result"
"""The tool by which a model reads on; it is answered from what is recorded."""
SPEC: Final = ToolSpec(
    name=READ_MORE,
    description="Read on in a result that was cut. `id` and `offset` stand where it was cut.",
    schema={
        "type": "object",
        "properties": {"id": {"type": "string"}, "offset": {"type": "integer", "minimum": 0}},
        "required": ["id", "offset"],
        "additionalProperties": False,
    },
)
LEFT_OUT: Final = regex(r"\n\[(?:cut: characters \d|left out to make room;)[^\n]*\]\Z")
"""Ends a text that is not whole, and says how to read on."""
NO_RESULTS: Final[Mapping[str, str]] = MappingProxyType({})


class CallResults:
    """Results of every call, in full."""

    def __init__(self, limit: int, earlier: Mapping[str, str] = NO_RESULTS) -> None:
        self._limit = limit
        self._texts: dict[str, str] = dict(earlier)

    def keep(self, call: str, value: Any) -> str:
        """Keep a result under the call's identifier; the text that the model gets."""
        self._texts[call] = text_of(value)
        return self._from(call, 0)

    def read(self, args: dict[str, Any]) -> tuple[str, bool]:
        """The text behind `id` from `offset` on, and whether there is such a place."""
        call, offset = args.get("id"), args.get("offset")
        if not isinstance(call, str) or call not in self._texts:
            return f"There is no result with the id {call!r}.", False
        if not isinstance(offset, int) or not 0 <= offset <= len(self._texts[call]):
            return f"The result has {len(self._texts[call])} characters.", False
        return self._from(call, offset), True

    def _from(self, call: str, offset: int) -> str:
        text = self._texts[call]
        end = offset + self._limit
        if end >= len(text):
            return text[offset:]
        note = f'[cut: characters {offset} to {end} of {len(text)}; read on with id "{call}" and offset {end}]'
        return f"{text[offset:end]}\n{note}"


Answers = list[tuple[str, tuple[ToolCall, ...]]]
"""The calls of every answer, with the step of its question."""
_OWN: Final = 3
"""Parts of the steps at which an agent itself asks; agents that it has as tools ask at longer ones."""


class Prompts:
    """The newest prompt of a job, and the answer to it.

    `own`: only what the job's recipe asks itself, and no summaries, as an agent's conversation. `base` is the
    conversation of an earlier job that this one continues with.
    """

    def __init__(self, journal: Journal, *, own: bool, base: Thread = EMPTY) -> None:
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

    def results_after(self, step: str, answer: Message) -> list[Message]:
        """Return the results of an answer's calls, as the next prompt holds them; none: there is no such prompt."""
        tip = tip_of(self._asked_at[step], digest_of(answer)) if step in self._asked_at else ""
        after = [newest for before, newest in self._before.values() if before == tip and newest in self._bodies]
        return [message for newest in after if (message := message_of(self._bodies[newest])).role == "tool"][:1]

    def messages(self) -> list[Message]:
        """The conversation, oldest first."""
        thread = self.thread(self.tip)
        return thread.messages() if thread is not None else []

    def thread(self, tip: str) -> Thread | None:
        """The conversation up to a tip; None if that is not among what was folded."""
        digests: list[str] = []
        while tip not in {START, self._base.tip}:
            if tip not in self._before:
                return None
            tip, newest = self._before[tip]
            digests.append(newest)
        start = self._base if tip == self._base.tip else EMPTY
        return start.add(*(message_of(self._bodies[digest_]) for digest_ in reversed(digests)))

    async def _asked(self, started: CommandStarted) -> None:
        tip = started.after
        for message in started.added:
            tip = await self._add(tip, message)
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

    async def _add(self, before: str, message: MessageKept) -> str:
        body = await self._journal.value(message.body, message.body_blob)
        if body is not None:
            self._bodies[message.digest] = body
        tip = tip_of(before, message.digest)
        self._before[tip] = (before, message.digest)
        return tip

    def _newest(self, tip: str) -> Message | None:
        _, newest = self._before.get(tip, ("", ""))
        return message_of(self._bodies[newest]) if newest else None


async def result_of(call: ToolCall, record: CallRecord | None, journal: Journal) -> ToolMessage:
    """Return what a model is told of a call of a job that has ended, even if no one knows its outcome."""
    if record is None:
        text = words.UNKNOWN if call.name.startswith(RUN) else words.STOPPED
        return ToolMessage(call.id, call.name, text, failed=True)
    if not record.ended:
        return ToolMessage(call.id, call.name, words.UNKNOWN if record.unknown else words.STOPPED, failed=True)
    outcome: Outcome = await recorded_outcome(record, journal)
    text = CallResults(LONG_RESULT).keep(call.id, outcome.value) if outcome.ok else words.failure(outcome)
    return ToolMessage(call.id, call.name, text, failed=not outcome.ok)


def steps_of(answers: Iterable[tuple[str, tuple[ToolCall, ...]]], history: JobHistory) -> dict[str, str]:
    """The step at which each call was made, by the call's identifier.

    An agent makes the calls of one answer after it and in their order, and leaves out those that it refuses, so a walk
    through all steps in their order finds each.
    """
    walk: list[tuple[list[tuple[int, str]], str, tuple[ToolCall, ...] | None]] = [
        *((_order(step), step, calls) for step, calls in answers),
        *((_order(step), step, None) for step in history.calls if step.count(".") < _OWN),
    ]
    wanted: list[ToolCall] = []
    steps: dict[str, str] = {}
    for _, step, calls in sorted(walk, key=lambda each: each[0]):
        if calls is not None:
            wanted = list(calls)
            continue
        place = next((place for place, call in enumerate(wanted) if _is(call, history.calls[step])), None)
        if place is not None:
            steps[wanted[place].id] = step
            del wanted[: place + 1]
    return steps


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


class EarlierConversation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation, as the input of an agent names it."""

    job: str
    """The job that recorded it."""
    tip: str
    """Digest of the whole conversation (models/thread.py)."""
    more: tuple[Message, ...] = ()
    """The results of the calls in its last message, if that ends with calls."""


class RecalledConversation(NamedTuple):
    """A conversation, read again."""

    thread: Thread
    results: dict[str, str]
    """Results that are cut in it, whole, by identifier."""


class _Part(NamedTuple):
    """The part of it that one job holds."""

    tip: str
    """The conversation as the job left it."""
    events: list[Event]


_KEPT: Final = 16
_threads: Final[dict[str, RecalledConversation]] = {}
"""Conversations that were read last, by tip, without any that may be erased: the next turn reads only what is new."""


async def prompts_of(journal: Journal, events: list[Event], *, own: bool) -> Prompts:
    """The newest prompt of a job with all messages, those that earlier jobs hold included."""
    job, tip = _before(events)
    base = (await recall(journal, EarlierConversation(job=job, tip=tip))).thread if job else EMPTY
    prompts = Prompts(journal, own=own, base=base)
    await prompts.fold(events)
    return prompts


async def referring(job: str, events: list[Event], journal: Journal) -> EarlierConversation | None:
    """A reference to the conversation of a job that has ended; None if it asked nothing.

    Each call in its last answer has a result, even if no one knows its outcome.
    """
    prompts = Prompts(journal, own=True)
    await prompts.fold(events)
    if not prompts.tip:
        return None
    answer = prompts.answer
    if answer is None or not answer.calls:
        return EarlierConversation(job=job, tip=prompts.tip)
    history = JobHistory(events)
    calls = {call: history.calls[step] for call, step in steps_of(prompts.answers, history).items()}
    last = [await result_of(call, calls.get(call.id), journal) for call in answer.calls]
    return EarlierConversation(job=job, tip=prompts.tip, more=(results(*last),))


async def recall(journal: Journal, earlier: EarlierConversation) -> RecalledConversation:
    """Read a conversation again. Raises StateError if it is not there, PayloadErasedError if it was erased."""
    thread = await _recall(journal, earlier, _threads)
    if thread is None:  # a result was cut since, which stands before what is kept
        thread = await _recall(journal, earlier, {})
    if thread is None:
        raise AssertionError(earlier.tip)
    head = await journal.head(stream_of(earlier.job))
    if head is not None and not head.subject:
        _threads[earlier.tip] = thread
        if len(_threads) > _KEPT:
            del _threads[next(iter(_threads))]
    return thread


async def _recall(
    journal: Journal, earlier: EarlierConversation, known: Mapping[str, RecalledConversation]
) -> RecalledConversation | None:
    """Out of what is kept, and the jobs since; None: those do not hold every result that is cut in it."""
    parts: list[_Part] = []
    job, tip, base = earlier.job, earlier.tip, known.get(earlier.tip)
    while job and base is None:
        parts.append(_Part(tip, await whole(journal, await journal.read(stream_of(job)))))
        job, tip = _before(parts[-1].events)
        base = known.get(tip)
    thread, answered = base.thread if base is not None else EMPTY, []
    for part in reversed(parts):
        prompts = Prompts(journal, own=True, base=thread)
        await prompts.fold(part.events)
        part_thread = prompts.thread(part.tip)
        if part_thread is None:
            msg = f"{earlier.job} does not hold the conversation {earlier.tip[:19]}…"
            raise StateError(msg, code=Code.JOB_NOT_CONVERSATION, remedy="Continue with `remit chat`.")
        thread = part_thread
        answered.append((part.events, prompts.answers))
    results = dict(base.results) if base is not None else {}
    wanted = _cut([*thread.messages(), *earlier.more])
    for events, answers in reversed(answered):
        missing = wanted.keys() - results.keys()
        if missing:
            results |= await _outcomes(journal, JobHistory(events), answers, missing)
    if base is not None and not results.keys() >= wanted.keys():
        return None
    return RecalledConversation(
        thread, {call: text for call, text in results.items() if call in wanted and text != wanted[call]}
    )


def _before(events: list[Event]) -> tuple[str, str]:
    """The job whose conversation a job continued with, and how it stood then; empty: it began one."""
    for event in events:
        payload = decode(event.kind, event.data) if event.kind == CommandStarted.KIND else None
        if isinstance(payload, CommandStarted) and payload.after_job:
            return payload.after_job, payload.after
    return "", ""


def _cut(messages: list[Message]) -> dict[str, str]:
    """The results of tools that are not whole in a conversation."""
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolMessage)]
    tools = [block for block in blocks if block.name != READ_MORE and not block.name.startswith(RUN)]
    return {block.id: block.text for block in tools if LEFT_OUT.search(block.text)}


async def _outcomes(
    journal: Journal, history: JobHistory, answers: Answers, wanted: AbstractSet[str]
) -> dict[str, str]:
    """Those of the wanted results that a job holds: as its calls gave them, or as it was given them itself."""
    recorded = await _given(journal, history)
    outcomes = {call: recorded[call] for call in wanted if call in recorded}
    for call, step in steps_of(answers, history).items():
        if call in wanted and history.calls[step].ended:
            outcome = await recorded_outcome(history.calls[step], journal)
            if outcome.ok:
                outcomes[call] = text_of(outcome.value)
    return outcomes


async def _given(journal: Journal, history: JobHistory) -> dict[str, str]:
    """Whole results that a job was given, as those that began before conversations were referred to."""
    created = history.created
    recorded = await journal.value(created.input, created.input_blob) if created is not None else None
    inputs: dict[str, Any] = msgspec.json.decode(recorded) if recorded else {}
    return inputs.get("results") or {}
