"""Agents: the jobs of the recipe `agent`, and the conversation of one with its calls, tokens and cost."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from remit.codes import Code
from remit.errors import RemitError, UsageError
from remit.jobs.skills import AGENT
from remit.jobs.state import ENDED
from remit.pages.jobs import JobListRow, line_of
from remit.pages.page import INLINE, Page, PageRequest, PageView, See, link
from remit.pages.talk import TalkMessage, talk_of
from remit.parts.agents.conversations import IMPORTED
from remit.record.states import JobState, standing
from remit.record.usage import UsageRow
from remit.record.views import ConfirmationView, JobRow
from remit.service.options import Options

_PAGE: Final = 50
_NEWEST: Final = 200
"""Messages of a page, unless all are asked for."""
_NAME: Final = "remit.name"


class AgentsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which agents."""

    before: str = ""
    """Continue after this job of an earlier page."""


class Agents(PageView, frozen=True, kw_only=True):
    """Agents, newest first."""

    template: ClassVar[str] = "agents.html"
    before: str
    lines: tuple[JobListRow, ...]
    next: str
    """Continue after this job; empty: this is the last page."""


class AgentPage(PageView, frozen=True, kw_only=True):
    """One agent's conversation."""

    template: ClassVar[str] = "agent.html"
    job: str
    standing: JobState
    principal: str
    created_at: int
    conversation: tuple[TalkMessage, ...]
    messages: int
    speech: tuple[str, ...]
    """The words that models of this process are saying, as far as it has come: the ends of long texts."""
    usage: tuple[UsageRow, ...]
    """By model."""
    questions: tuple[ConfirmationView, ...]
    ended: bool
    answers: bool
    """Whether something can be said to it."""
    wrong: str = ""
    """Why the conversation, or what was said, cannot be taken."""
    typed: str = ""


class ConversationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a conversation."""

    all: bool = False


class Say(msgspec.Struct, frozen=True, kw_only=True):
    """Something to say."""

    text: str


async def agents(request: PageRequest) -> Agents:
    """A page of agents."""
    before = request.query.before
    rows = await request.service.jobs.rows(labels={_NAME: AGENT}, limit=_PAGE + 1, before=before or None)
    return Agents(
        title="Agents",
        before=before,
        lines=tuple(_line(row, request.now) for row in rows[:_PAGE]),
        next=rows[_PAGE - 1].job if len(rows) > _PAGE else "",
    )


def _line(row: JobRow, now: int) -> JobListRow:
    """An agent as a line: its task stands without a name."""
    line = line_of(row, now)
    return msgspec.structs.replace(line, title=line.title.removeprefix("task: "))


async def agent(request: PageRequest) -> AgentPage:
    """An agent's page. Raises NotFoundError."""
    return await _agent(request, everything=request.query.all)


async def moved(request: PageRequest) -> object:
    """Return what stays equal while nothing is said."""
    job = await request.service.jobs.find(request.path["job"])
    pending = await request.service.confirmations.pending()
    speech = request.service.streams.speech(job)
    return await request.service.jobs.events(job), await request.service.jobs.row(job), len(pending), speech


async def say(request: PageRequest) -> AgentPage | See:
    """Say something: to this job if it is at work, else to a new one that continues the conversation."""
    job, service = await request.service.jobs.find(request.path["job"]), request.service
    if (await service.jobs.row(job)).state not in ENDED:
        request.access.require("decide")  # it continues with what it may do, not with what the token is for
    text: str = request.form.text.replace("\r\n", "\n")
    options = Options(principal=request.principal, tools=request.access.tools or None)
    try:
        answering = await service.conversations.say(job, text, options)
    except UsageError as error:
        return await _agent(request, wrong=error.message, typed=text)
    return See(link("/agents/{}", answering))


async def _agent(request: PageRequest, *, everything: bool = False, wrong: str = "", typed: str = "") -> AgentPage:
    service = request.service
    job = await service.jobs.find(request.path["job"])
    row = await service.jobs.row(job)
    status = 400 if wrong else 200
    try:
        messages = await service.conversations.messages(job)
    except RemitError as error:
        if error.code is not Code.PAYLOAD_ERASED:
            raise
        messages, wrong = [], error.message
    conversation = talk_of(messages)
    return AgentPage(
        title=f"{row.name or 'job'} {job[-6:]}",
        status=status,
        job=job,
        standing=standing(row, request.now),
        principal=(await service.streams.narrative(job)).principal,
        created_at=row.created_at,
        conversation=conversation if everything else conversation[-_NEWEST:],
        messages=len(conversation),
        speech=tuple(text[-INLINE:] for text in service.streams.speech(job).values()),
        usage=tuple(await service.usage.of(job)),
        questions=tuple(await service.confirmations.pending(job)),
        ended=row.state in ENDED,
        answers=row.name in {AGENT, IMPORTED},
        wrong=wrong,
        typed=typed,
    )


PAGES: Final = (
    Page(
        path="/agents",
        scope="read",
        handler=agents,
        name="Agents",
        key="a",
        under="Agents",
        about="conversations with models, their calls, tokens and cost",
        query=AgentsQuery,
        live="heads",
    ),
    Page(path="/agents/{job}", scope="read", handler=agent, query=ConversationQuery, live="words", mark=moved),
    Page(path="/agents/{job}/say", scope="call", handler=say, form=Say),
)
