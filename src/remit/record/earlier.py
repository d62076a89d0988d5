"""A conversation that goes on in another job, which refers to it and does not hold it again.

So a thousand jobs that continue each other record what one job of a thousand turns does. The reference names the job
that recorded the conversation, and the digest of all of its messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.codes import Code
from remit.errors import StateError
from remit.gateway.model_text import text_of
from remit.jobs.effects.outcomes import recorded_outcome
from remit.jobs.state import History, stream_of
from remit.journal.kinds import CommandStarted, decode
from remit.journal.lineage import whole
from remit.models.message import Message, ToolResult, results
from remit.models.thread import EMPTY, Thread
from remit.record.results import LEFT_OUT, READ_MORE, RUN
from remit.record.transcript import Answers, Prompts, result_of, steps_of

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal


class Earlier(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation, as the input of an agent names it."""

    job: str
    """The job that recorded it."""
    tip: str
    """Digest of the whole conversation (models/thread.py)."""
    more: tuple[Message, ...] = ()
    """The results of the calls in its last message, if that ends with calls."""


class Recalled(NamedTuple):
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
_kept: Final[dict[str, Recalled]] = {}
"""Conversations that were read last, by tip, without any that may be erased: the next turn reads only what is new."""


async def prompts_of(journal: Journal, events: list[Event], *, own: bool) -> Prompts:
    """The newest prompt of a job with all messages, those that earlier jobs hold included."""
    job, tip = _before(events)
    base = (await recall(journal, Earlier(job=job, tip=tip))).thread if job else EMPTY
    prompts = Prompts(journal, own=own, base=base)
    await prompts.fold(events)
    return prompts


async def referring(job: str, events: list[Event], journal: Journal) -> Earlier | None:
    """A reference to the conversation of a job that has ended; None if it asked nothing.

    Each call in its last answer has a result, even if no one knows its outcome.
    """
    prompts = Prompts(journal, own=True)
    await prompts.fold(events)
    if not prompts.tip:
        return None
    answer = prompts.answer
    if answer is None or not answer.calls:
        return Earlier(job=job, tip=prompts.tip)
    history = History(events)
    made = {call: history.calls[step] for call, step in steps_of(prompts.answers, history).items()}
    last = [await result_of(call, made.get(call.id), journal) for call in answer.calls]
    return Earlier(job=job, tip=prompts.tip, more=(results(*last),))


async def recall(journal: Journal, earlier: Earlier) -> Recalled:
    """Read a conversation again. Raises StateError if it is not there, PayloadErasedError if it was erased."""
    found = await _recall(journal, earlier, _kept)
    if found is None:  # a result was cut since, which stands before what is kept
        found = await _recall(journal, earlier, {})
    if found is None:
        raise AssertionError(earlier.tip)
    head = await journal.head(stream_of(earlier.job))
    if head is not None and not head.subject:
        _kept[earlier.tip] = found
        if len(_kept) > _KEPT:
            del _kept[next(iter(_kept))]
    return found


async def _recall(journal: Journal, earlier: Earlier, kept: Mapping[str, Recalled]) -> Recalled | None:
    """Out of what is kept, and the jobs since; None: those do not hold every result that is cut in it."""
    parts: list[_Part] = []
    job, tip, base = earlier.job, earlier.tip, kept.get(earlier.tip)
    while job and base is None:
        parts.append(_Part(tip, await whole(journal, await journal.read(stream_of(job)))))
        job, tip = _before(parts[-1].events)
        base = kept.get(tip)
    thread, answered = base.thread if base is not None else EMPTY, []
    for part in reversed(parts):
        prompts = Prompts(journal, own=True, base=thread)
        await prompts.fold(part.events)
        found = prompts.thread(part.tip)
        if found is None:
            msg = f"{earlier.job} does not hold the conversation {earlier.tip[:19]}…"
            raise StateError(msg, code=Code.JOB_NOT_CONVERSATION, remedy="Continue with `remit chat`.")
        thread = found
        answered.append((part.events, prompts.answers))
    results = dict(base.results) if base is not None else {}
    wanted = _cut([*thread.messages(), *earlier.more])
    for events, answers in reversed(answered):
        missing = wanted.keys() - results.keys()
        if missing:
            results |= await _outcomes(journal, History(events), answers, missing)
    if base is not None and not results.keys() >= wanted.keys():
        return None
    return Recalled(thread, {call: text for call, text in results.items() if call in wanted and text != wanted[call]})


def _before(events: list[Event]) -> tuple[str, str]:
    """The job whose conversation a job continued with, and how it stood then; empty: it began one."""
    for event in events:
        payload = decode(event.kind, event.data) if event.kind == CommandStarted.KIND else None
        if isinstance(payload, CommandStarted) and payload.after_job:
            return payload.after_job, payload.after
    return "", ""


def _cut(messages: list[Message]) -> dict[str, str]:
    """The results of tools that are not whole in a conversation."""
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolResult)]
    tools = [block for block in blocks if block.name != READ_MORE and not block.name.startswith(RUN)]
    return {block.id: block.text for block in tools if LEFT_OUT.search(block.text)}


async def _outcomes(journal: Journal, history: History, answers: Answers, wanted: AbstractSet[str]) -> dict[str, str]:
    """Those of the wanted results that a job holds: as its calls gave them, or as it was given them itself."""
    given = await _given(journal, history)
    found = {call: given[call] for call in wanted if call in given}
    for call, step in steps_of(answers, history).items():
        if call in wanted and history.calls[step].ended:
            outcome = await recorded_outcome(history.calls[step], journal)
            if outcome.ok:
                found[call] = text_of(outcome.value)
    return found


async def _given(journal: Journal, history: History) -> dict[str, str]:
    """Whole results that a job was given, as those that began before conversations were referred to."""
    created = history.created
    recorded = await journal.value(created.input, created.input_blob) if created is not None else None
    given: dict[str, Any] = msgspec.json.decode(recorded) if recorded else {}
    return given.get("results") or {}
