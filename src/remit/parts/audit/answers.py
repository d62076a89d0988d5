"""Answers to an auditor: what was called, in which version, who allowed and refused it, what is not known.

Of one job everything is read from its streams, but who read it. Of a whole journal the sums come from an index over it
(remit.parts.audit.index), and each act that is told from its own event.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.journal import kinds as k
from remit.journal.event import HeadQuery
from remit.journal.leases import Owner
from remit.journal.lineage import whole
from remit.journal.scan import event_at, every_head
from remit.parts.audit.facts import Act, AuditFacts, Context, Entry, FactsState, ModelSum, ToolSum, What, told
from remit.parts.audit.index import AuditIndex
from remit.policy.overlay import covers
from remit.record.heads import head_of, stream_named
from remit.record.job_story import beside
from remit.record.walk import root_of
from remit.service.replay import Resumes
from remit.tools.names import key_of

if TYPE_CHECKING:
    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal
    from remit.parts.audit.facts import Counts

_OF_JOBS: Final = ("called", "decided")
"""Acts that are too many to be told of a whole journal."""


class AuditQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked; every condition has to hold."""

    job: str = ""
    """A job or session; empty: the whole journal."""
    tool: str = ""
    """A tool by name, glob or key."""
    model: str = ""
    """A part of a model's name, as it was asked or as it answered."""
    principal: str = ""
    since: int = 0
    """Microseconds since the Unix epoch."""
    until: int | None = None
    what: What | None = None
    """Tell acts of this kind alone."""
    before: int = 0
    """Continue before this position of an earlier page; 0: with the newest."""
    limit: int = 50


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that the question covers."""

    job: str = ""
    """Empty: the whole journal."""
    events: int
    """Events in this time, whether they say anything of this or not."""
    tools: tuple[ToolSum, ...]
    """Calls by tool, version, schema and principal, the newest first."""
    models: tuple[ModelSum, ...]
    """Answers by model and principal, the newest first."""
    pruned: int = 0
    """Streams that were pruned in this time: a stub is left of each, and what it stands for is counted no more."""
    acts: dict[str, int]
    """The number of acts of each kind."""
    entries: tuple[Entry, ...]
    """A page of the acts, the newest first."""
    next: int = 0
    """`before` of the next page; 0: there is no more."""
    index: str = ""
    """Of a question asked again without the index, whether that says the `same`, or `differs`; else empty."""
    today: Any = None
    """The differences of the job today, as `remit drift` has it."""
    resumes: Resumes = ""
    """Whether the job would go on under today's code, tools and models; empty: this was not asked."""
    because: tuple[str, ...] = ()
    """Differences that do not stop it, or what would stop it first."""
    against: Any = None
    """The differences of the other job, as `remit diff` has them."""


async def answer(journal: Journal, question: AuditQuestion, *, again: bool = False) -> Answer:
    """Answer a question. Raise NotFoundError for a job that is not there, UsageError, and JournalError.

    `again` reads every event of the journal, and says whether the index says the same.
    """
    if question.job and question.what != "read":
        return await _of_job(journal, question)
    if question.what in _OF_JOBS:
        remedy = "Without it, the calls and answers of all are counted by tool, model and principal."
        raise UsageError(f"{question.what}: each is told of one job", code=Code.INVALID_INPUT, remedy=remedy)
    index, differs = AuditIndex(journal), ""
    sums = await index.sums(question.since, question.until)
    if again:
        known, sums = sums, await index.sums_again(question.since, question.until, sums.last)
        differs = "same" if known.counts == sums.counts else "differs"
    doubts = [act async for act in _doubts(journal, sums.state, question)]
    page, more, acts = _chosen(question, [*sums.counts.acts, *doubts])
    events = [(act, await event_at(journal, act.position)) for act in page]
    entries = [told(act, event, await _context(journal, event)) for act, event in events if event is not None]
    return msgspec.structs.replace(_answer(question, sums.counts, acts, entries, more), index=differs)


async def _of_job(journal: Journal, question: AuditQuestion) -> Answer:
    await head_of(journal, question.job)
    events = await _events(journal, question.job)
    facts = AuditFacts(FactsState(), question.since, question.until, each=True)
    ends: dict[str, k.ToolInvocationFinished] = {}
    for position, event in enumerate(events, 1):
        facts.take(position, event)
        payload = k.decode(event.kind, event.data) if event.kind == k.ToolInvocationFinished.KIND else None
        if isinstance(payload, k.ToolInvocationFinished):
            ends[payload.invocation_id] = payload
    doubts = {act.position: act async for act in _doubts(journal, facts.state, question)}
    page, more, acts = _chosen(question, [doubts.get(act.position, act) for act in facts.counts.acts])
    entries = []
    for act in page:
        event = events[act.position - 1]
        context = await _context(journal, event)
        payload = k.decode(event.kind, event.data)
        if isinstance(payload, k.ToolInvocationStarted):
            is_running = payload.invocation_id in facts.state.calls and act.position not in doubts
            context = Context(end=ends.get(payload.invocation_id), is_running=is_running)
        entries.append(told(act, event, context))
    return _answer(question, facts.counts, acts, entries, more)


async def _events(journal: Journal, job: str) -> list[Event]:
    """Everything recorded of a job or session, its questions and its inbox, in order of time."""
    events: list[Event] = []
    for stream in [stream_named(job), *await beside(journal, job)]:
        events += await whole(journal, await journal.read(stream))
        async for head in every_head(journal, HeadQuery(prefix=f"{stream}/")):
            events += await journal.read(head.stream)
    return sorted({(event.stream, event.seq): event for event in events}.values(), key=lambda event: event.at)


def _answer(question: AuditQuestion, counts: Counts, acts: dict[str, int], entries: list[Entry], more: int) -> Answer:
    tools = [tool for tool in counts.tools.values() if _wants(question, tool.principal, tool.tool)]
    models = [
        model for model in counts.models.values() if _wants(question, model.principal, "", model.asked, model.answered)
    ]
    return Answer(
        job=question.job,
        events=sum(counts.kinds.values()),
        pruned=counts.kinds.get(k.StreamPruned.KIND, 0),
        tools=tuple(sorted(tools, key=lambda tool: -tool.last_at)),
        models=tuple(sorted(models, key=lambda model: -model.last_at)),
        acts=acts,
        entries=tuple(entries),
        next=more,
    )


def _chosen(question: AuditQuestion, acts: list[Act]) -> tuple[list[Act], int, dict[str, int]]:
    """The page of acts, where the next one begins, and the number of each kind on all pages."""
    wanted = [act for act in acts if _wants(question, act.who, act.name, act.name)]
    if question.job and question.what == "read":
        wanted = [act for act in wanted if act.what == "read" and act.note == question.job]
    numbers: dict[str, int] = {}
    for act in wanted:
        numbers[act.what] = numbers.get(act.what, 0) + 1
    listed = [act for act in wanted if question.what in {None, act.what}]
    listed.sort(key=lambda act: (-act.at, -act.position))  # positions alone say nothing of a journal that was copied
    if question.before:
        place = next((place for place, act in enumerate(listed, 1) if act.position == question.before), None)
        listed = listed[place:] if place is not None else [act for act in listed if act.position < question.before]
    page = listed[: question.limit]
    return page, page[-1].position if len(listed) > len(page) else 0, numbers


def _wants(question: AuditQuestion, principal: str, tool: str, *models: str) -> bool:
    if question.principal and principal != question.principal:
        return False
    if not (question.tool or question.model):
        return True
    is_tool = bool(question.tool and tool) and covers((question.tool,), tool, key_of(tool) if "." in tool else tool)
    return is_tool or bool(question.model and any(question.model in name for name in models))


async def _doubts(journal: Journal, state: FactsState, question: AuditQuestion) -> AsyncIterator[Act]:
    """Give the calls that may have had an effect, and whose outcome is unknown."""
    heads: dict[str, StreamHead | None] = {}
    for call in state.calls.values():
        if not call.has_effect or call.at < question.since or (question.until and call.at >= question.until):
            continue
        root = root_of(call.stream)
        if root not in heads:
            heads[root] = await journal.head(root)
        if call.doubt or not _is_held(heads[root], journal.clock.now()):
            yield Act("uncertain", call.position, call.at, call.tool, call.principal)


def _is_held(head: StreamHead | None, now: int) -> bool:
    """Return whether a process that may still be alive makes the call."""
    if head is None or head.lease_owner is None or (head.lease_until or 0) <= now:
        return False
    owner = Owner.parse(head.lease_owner)
    return owner is None or not owner.dead()


async def _context(journal: Journal, event: Event) -> Context:
    """Return the question that an event answers."""
    if event.kind != k.ConfirmationDecided.KIND or f"/{CONFIRMATION}/" not in event.stream:
        return Context()
    first = await journal.page(event.stream, 0, 1)
    payload = k.decode(first[0].kind, first[0].data) if first else None
    return Context(question=payload if isinstance(payload, k.ConfirmationRequested) else None)
