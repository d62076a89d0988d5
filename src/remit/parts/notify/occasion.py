"""Which recorded events people are told of, and what the journal says about each.

question   confirmation_requested, in the question's own stream
expired    confirmation_decided with the decision `expire`
stuck      job_waiting for a person, because the code at hand cannot continue the job
uncertain  job_waiting for a person, because it is unknown whether a call, or the undoing of one, happened
failed     job_failed
budget     budget_reached
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from remit.canonical import sha256
from remit.errors import PayloadErasedError, RecordPrunedError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.jobs.state import CODE, DOUBT, UNDO_DECISION, inbox_of, job_of
from remit.jobs.state import KIND as JOB
from remit.journal import kinds as k
from remit.journal.kinds import STUCK
from remit.redact import line, words_of

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal
    from remit.parts.notify.target import EventName

KINDS: Final = tuple(
    payload.KIND
    for payload in (k.ConfirmationRequested, k.ConfirmationDecided, k.JobWaiting, k.JobFailed, k.BudgetReached)
)
"""The kinds of events among which they are."""
_PLAIN: Final[dict[str, EventName]] = {k.JobFailed.KIND: "failed", k.BudgetReached.KIND: "budget"}
"""Kinds of which each event is one."""
_DRIFTS: Final = (k.VersionMismatchRecorded, k.SchemaDriftRecorded, k.ModelDriftRecorded)
_STILL: Final = frozenset(payload.KIND for payload in (k.JobWaiting, k.RecoveryStarted, *_DRIFTS))
"""Kinds of events after which a stuck job has not moved."""
_REASON: Final = 500
"""Characters of a reason or a question that are sent."""


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """One event that people are told of; every text is masked and cut, as in lists."""

    event: EventName
    at: int
    """Microseconds since the Unix epoch."""
    open: bool
    """Whether it is still worth telling: no one has answered, and the job has not gone on."""
    job: str = ""
    """Empty: no job made the call."""
    recipe: str = ""
    labels: dict[str, str] = {}
    confirmation: str = ""
    tool: str = ""
    level: str = ""
    step: str = ""
    principal: str = ""
    question: str = ""
    arguments: str = ""
    """Empty also where they can be erased: a message that was sent cannot."""
    code: str = ""
    reason: str = ""
    expires_at: int | None = None


def event_of(event: Event) -> EventName | None:
    """The name under which people are told of an event; None: they are not."""
    if event.kind in _PLAIN:
        return _PLAIN[event.kind]
    asks = f"/{CONFIRMATION}/" in event.stream
    match k.decode(event.kind, event.data) if event.kind in KINDS else None:
        case k.ConfirmationRequested() if asks:
            return "question"
        case k.ConfirmationDecided(decision="expire") if asks:
            return "expired"
        case k.JobWaiting(wait_type="human", correlation_key=key):
            if key.startswith(STUCK):
                return "stuck"
            return "uncertain" if key.startswith(DOUBT) or key == UNDO_DECISION else None
        case _:
            return None


async def identity_of(journal: Journal, event: Event, name: EventName) -> str:
    """The words that name an event among all: of a job that is found stuck again and again, always the same."""
    if name != "stuck":
        return f"{event.stream} {event.seq}"
    waiting = k.decode(event.kind, event.data)
    key = waiting.correlation_key if isinstance(waiting, k.JobWaiting) else ""
    before = [
        earlier
        for earlier in await journal.read(event.stream)
        if earlier.seq < event.seq and earlier.kind not in _STILL
    ]
    return f"{event.stream} {before[-1].seq if before else 0} {key}"


def notification_of(target: str, identity: str) -> str:
    """The identifier of the notification that tells a target of an event."""
    return f"n_{sha256(f'{target} {identity}'.encode()).removeprefix('sha256:')[:32]}"


async def read_occasion(journal: Journal, stream: str, seq: int) -> Occasion | None:
    """Return what the journal says now about an event at a place; None if no one is told of it, or it was pruned."""
    try:
        events = await journal.read(stream)
    except RecordPrunedError:
        return None
    event = events[seq - 1] if seq <= len(events) else None
    name = event_of(event) if event is not None else None
    if event is None or name is None:
        return None
    if name in {"question", "expired"}:
        return await _question(journal, events, event, name)
    if name == "budget":
        return await _budget(journal, event)
    head = await journal.head(stream)
    return await _job(journal, events, event, name, head) if head is not None else None


async def _budget(journal: Journal, event: Event) -> Occasion | None:
    """A level of a budget; the job is the one whose question reached it."""
    reached = k.decode(event.kind, event.data)
    if not isinstance(reached, k.BudgetReached):
        return None
    share = f" of {reached.share}" if reached.share else ""
    occasion = Occasion(
        event="budget",
        at=event.at,
        open=True,
        step=reached.step,
        code=line(f"{reached.budget}{share}: {reached.level} %"),
        reason=line(reached.taken, _REASON),
    )
    return _with_job(occasion, await journal.head(reached.stream))


async def _question(journal: Journal, events: Sequence[Event], event: Event, name: EventName) -> Occasion | None:
    request = k.decode(events[0].kind, events[0].data)
    head = await journal.head(event.stream)
    if not isinstance(request, k.ConfirmationRequested) or head is None:
        return None
    caller = await journal.head(event.stream.rpartition(f"/{CONFIRMATION}/")[0])
    lapsed = request.expires_at is not None and request.expires_at <= journal.clock.now()
    waits = head.state == "pending" and not lapsed and (caller is None or not caller.closed)
    occasion = Occasion(
        event=name,
        at=event.at,
        open=waits or name == "expired",
        confirmation=request.confirmation,
        tool=request.tool_name,
        level=f"L{request.capability_level}" if request.provider_id else "",
        step=request.step,
        principal=request.principal,
        question=line(request.question, _REASON),
        arguments=await _arguments(journal, head, request.args, request.args_blob),
        expires_at=request.expires_at,
    )
    return _with_job(occasion, caller)


async def _job(
    journal: Journal, events: Sequence[Event], event: Event, name: EventName, head: StreamHead
) -> Occasion | None:
    payload = k.decode(event.kind, event.data)
    if isinstance(payload, k.JobFailed):
        error = payload.error
        occasion = Occasion(event=name, at=event.at, open=True, step=error.step, code=line(error.code))
        return _with_job(msgspec.structs.replace(occasion, reason=line(error.message, _REASON)), head)
    if not isinstance(payload, k.JobWaiting):
        return None
    occasion = Occasion(event=name, at=event.at, open=not head.closed, step=payload.step)
    if name == "stuck":
        code = payload.correlation_key.removeprefix(STUCK)
        waits = occasion.open and head.labels.get(CODE) == code
        stuck = msgspec.structs.replace(occasion, open=waits, code=code, reason=line(payload.reason, _REASON))
        return _with_job(stuck, head)
    later = [*events[event.seq :], *await journal.read(inbox_of(job_of(event.stream)))]
    settled = any(_settles(later_event, payload, event.at) for later_event in later)
    occasion = msgspec.structs.replace(occasion, open=occasion.open and not settled)
    call = _call(events[: event.seq], payload.step)
    if call is not None:
        occasion = msgspec.structs.replace(
            occasion,
            tool=call.tool_name,
            level=f"L{call.capability_level}",
            principal=call.principal,
            arguments=await _arguments(journal, head, call.args, call.args_blob),
        )
    return _with_job(occasion, head)


def _settles(event: Event, waiting: k.JobWaiting, since: int) -> bool:
    """Return whether an event, recorded in the job or left in its inbox, ends what a step waits for."""
    match k.decode(event.kind, event.data):
        case k.WaitCompleted(step=step, correlation_key=key):
            return (step, key) == (waiting.step, waiting.correlation_key)
        case k.ToolInvocationFinished(step=step):
            return step == waiting.step
        case k.StepDecided(step=step):
            return step == waiting.step and event.at >= since
        case _:
            return False


def _call(events: Sequence[Event], step: str) -> k.ToolInvocationStarted | None:
    """The newest call of a step."""
    for event in reversed(events):
        payload = k.decode(event.kind, event.data) if event.kind == k.ToolInvocationStarted.KIND else None
        if isinstance(payload, k.ToolInvocationStarted) and payload.step == step:
            return payload
    return None


async def _arguments(journal: Journal, head: StreamHead, inline: k.OptionalRaw, ref: k.OptionalRef) -> str:
    """A call's arguments as lists show them; none of those about someone whose values can be erased."""
    if head.subject:
        return ""
    try:
        encoded = await journal.value(inline, ref)
    except PayloadErasedError:
        return ""
    return words_of(msgspec.json.decode(encoded)) if encoded is not None else ""


def _with_job(occasion: Occasion, head: StreamHead | None) -> Occasion:
    if head is None or head.kind != JOB:
        return occasion
    labels = {key: value for key, value in head.labels.items() if not key.startswith("remit.")}
    name = head.labels.get("remit.name", "")
    return msgspec.structs.replace(occasion, job=job_of(head.stream), recipe=name, labels=labels)
