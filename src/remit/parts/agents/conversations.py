"""Conversations of agents, out of the journal: to be shown, exported, and continued with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.gateway.outcome import text_of
from remit.jobs.inbox import JobInbox
from remit.jobs.skills import AGENT
from remit.jobs.state import ENDED, JobHistory, stream_of
from remit.journal.kinds import CommandStarted, SignalSent, WaitCompleted, decode
from remit.journal.lineage import whole
from remit.models.message import Message, user
from remit.models.openai_messages import from_openai, to_openai
from remit.operation import JobReference, operation
from remit.parts.agents.loop import CHAT
from remit.policy.overlay import within
from remit.record.heads import head_of
from remit.record.transcript import EarlierConversation, prompts_of, recall, referring
from remit.record.values import ERASED, value_of
from remit.service.options import Options
from remit.service.retry import CONTINUES
from remit.service.steps import answer_of, prompt_of

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.kinds import JobCreated
    from remit.service.jobs import Jobs
    from remit.service.noun_means import NounOpening
    from remit.service.service import Service

IMPORTED: Final = "conversation"
"""The recipe that keeps a conversation from elsewhere."""
CONVERSATIONS: Final = frozenset({AGENT, IMPORTED})
"""The recipes whose jobs can be continued with."""
_OWN: Final = frozenset({"task", "earlier", "messages", "results"})
"""Options that another task is not given again."""
_TITLE: Final = 60
_MAX_TEXT: Final = 1_000_000


class Conversations:
    """The conversations of one journal."""

    def __init__(self, journal: Journal, jobs: Jobs) -> None:
        self._journal = journal
        self._jobs = jobs

    # --- queries

    async def messages(self, job: str) -> list[Message]:
        """Give what was said in a job, oldest first: the newest prompt, the answer to it, and what is not answered yet.

        Raises NotFoundError.
        """
        conversation = await self._found(job)
        earlier = await conversation.said(self._journal) or await conversation.given(self._journal)
        return [*earlier, *(user(text) for text in await conversation.unheard(self._journal))]

    async def of_step(self, job: str, step: str) -> list[Message]:
        """Return what one step asked a model, and the answer if it has come. Raises NotFoundError (STEP_NOT_FOUND)."""
        conversation = await self._found(job)
        record = conversation.history.models.get(step)
        if record is None:
            reason = f"{job} asks no model at step {step!r:.80}"
            raise NotFoundError(reason, code=Code.STEP_NOT_FOUND, remedy=f"`remit show {job}` lists its steps.")
        answer = await answer_of(self._journal, record)
        return [*await prompt_of(self._journal, conversation.events, step), *(() if answer is None else (answer,))]

    @operation(
        "conversations.view",
        "GET /v1/jobs/{job}/conversation",
        "read",
        "Show an agent's conversation.",
        codes=(Code.JOB_NOT_FOUND, Code.STEP_NOT_FOUND, Code.PAYLOAD_ERASED),
    )
    async def in_openai_format(self, job: JobReference, step: str = "") -> list[dict[str, Any]]:
        """Show what was said in a job, or at one of its steps, in the message format of OpenAI's Chat Completions.

        Without `step`, the newest conversation of the job. Raises NotFoundError.
        """
        return to_openai(await (self.of_step(job, step) if step else self.messages(job)))

    # --- commands

    async def say(self, job: str, text: str, options: Options | None = None, *, key: str = "") -> str:
        """Say something to an agent; the job that answers.

        An agent at work hears it before its next question. If its job has ended, a new one continues the
        conversation, with the same model, tools and limits, and within what the old one was allowed; its input is
        untrusted if this text is, or that of the old one was. An agent at work takes no such text. Skills may be
        some of the old one's, or any if it had none; an agent at work keeps to its own. What is said to it
        under the same `key` is said once. Raises NotFoundError, UsageError, or StateError for what is not a
        conversation.
        """
        if not text.strip() or len(text) > _MAX_TEXT:
            raise UsageError(f"say something, in at most {_MAX_TEXT} characters")
        head = await head_of(self._journal, job)
        conversation = await self._found(job)
        created = conversation.created
        if created is None or created.name not in CONVERSATIONS:
            reason = f"{job} is not a conversation: it runs {created.name if created else 'nothing'}"
            raise StateError(
                reason, code=Code.JOB_NOT_CONVERSATION, remedy=f"`remit jobs --recipe {AGENT}` lists conversations."
            )
        options = options or Options()
        if head.state not in ENDED or await self._was_said(job, key):
            if options.untrusted and not created.input_untrusted:
                reason, remedy = (
                    f"{job} is at work, and takes what it is told for a person's",
                    "Say it once it has ended.",
                )
                raise UsageError(reason, remedy=remedy)
            if options.skills and {*options.skills} != {*_taken_up(created)}:
                reason = f"{job} is at work under {', '.join(_taken_up(created)) or 'no skills'}, and keeps to that"
                raise UsageError(reason, remedy="Name no skills, or say it once it has ended.")
            try:
                await self._jobs.signal(job, CHAT, text, by=options.principal, key=key)
            except StateError as error:
                if error.code is not Code.JOB_FINISHED:
                    raise
                conversation = await self._found(job)  # it has ended meanwhile
            else:
                return job
        inputs = await self._continued(conversation, text)
        labels = {**options.labels, CONTINUES: job}
        options = msgspec.structs.replace(options, subject=options.subject or head.subject, labels=labels)
        return await self._jobs.start_named(AGENT, inputs, _within(created, options, text))

    async def _was_said(self, job: str, key: str) -> bool:
        """Return whether the job was sent this before it ended."""
        inbox = JobInbox(self._journal, job)
        if key:
            await inbox.refresh()
        return inbox.has(key)

    async def _continued(self, conversation: _Found, text: str) -> dict[str, Any]:
        """The input of a job that continues a conversation."""
        inputs = await conversation.input(self._journal)
        inputs_kept = {name: value for name, value in inputs.items() if name not in _OWN}
        earlier = await referring(conversation.job, conversation.events, self._journal)
        if earlier is not None:
            inputs_kept["earlier"] = msgspec.to_builtins(earlier)
        else:  # nothing was asked yet
            inputs_kept |= {name: inputs[name] for name in _OWN if inputs.get(name)}
        unheard = [inputs["task"]] if earlier is None and inputs.get("task") else []
        unheard += await conversation.unheard(self._journal)
        return {**inputs_kept, "task": "\n\n".join([*unheard, text])}

    async def _found(self, job: str) -> _Found:
        await head_of(self._journal, job)
        return _Found(job, await whole(self._journal, await self._journal.read(stream_of(job))))


class _Found:
    """A job that holds a conversation."""

    def __init__(self, job: str, events: list[Event]) -> None:
        self.history = JobHistory(events)
        self.job = job
        self.events = events

    async def said(self, journal: Journal) -> list[Message]:
        """The newest prompt and its answer."""
        own = self.created is not None and self.created.name == AGENT
        return (await prompts_of(journal, self.events, own=own)).messages()

    @property
    def created(self) -> JobCreated | None:
        """Return how the job was created."""
        return self.history.created

    async def input(self, journal: Journal) -> dict[str, Any]:
        """Return what the job was given. Raises StateError if it was erased."""
        created = self.history.created
        value = await value_of(journal, created.input, created.input_blob) if created else None
        if value is ERASED or not isinstance(value, dict):
            reason = f"what {self.job} was given is erased"
            raise StateError(reason, code=Code.PAYLOAD_ERASED, remedy="Start a new conversation.")
        return value

    async def given(self, journal: Journal) -> list[Message]:
        """The conversation that the job was given, if it is an agent's."""
        if self.created is None or self.created.name not in {AGENT, IMPORTED}:
            return []
        inputs = await self.input(journal)
        earlier = inputs.get("earlier") or ()
        if isinstance(earlier, dict):
            named = msgspec.convert(earlier, EarlierConversation)
            before = [*(await recall(journal, named)).thread.messages(), *named.more]
        else:
            before = [msgspec.convert(message, Message) for message in earlier]
        before = before or from_openai(inputs.get("messages") or [])
        return [*before, user(inputs["task"])] if inputs.get("task") else before

    async def unheard(self, journal: Journal) -> list[str]:
        """Return what was said to the agent and asked of no model."""
        completed: list[WaitCompleted] = []
        for event in self.events:
            payload = decode(event.kind, event.data) if event.kind in _HEARING else None
            if isinstance(payload, CommandStarted):
                completed.clear()
            elif isinstance(payload, WaitCompleted) and payload.correlation_key == CHAT:
                completed.append(payload)
        inbox = JobInbox(journal, self.job)
        await inbox.refresh()
        waiting = [message for seq, message in inbox.messages if _is_said(message) and seq not in self.history.consumed]
        signals: list[Any] = [*completed, *waiting]
        return [text_of(await value_of(journal, signal.payload, signal.payload_blob)) for signal in signals]


_HEARING: Final = frozenset({CommandStarted.KIND, WaitCompleted.KIND})


def _is_said(message: object) -> bool:
    return isinstance(message, SignalSent) and message.name == CHAT


def _within(created: JobCreated, options: Options, text: str) -> Options:
    """Return how the job that goes on is filed: with every limit of the one before it (rule 8)."""
    rules = (*created.overlay.get("rules", ()), *options.policy)
    before, now = created.overlay.get("tools"), options.tools
    tools = before if now is None else now if before is None else _both(before, now)
    return msgspec.structs.replace(
        options,
        title=options.title or f"chat {text[:_TITLE]}",
        untrusted=options.untrusted or created.input_untrusted,
        policy=rules,
        tools=None if tools is None else tuple(tools),
        skills=_skills(created, options),
        budget={
            name: min(limits[name] for limits in (created.budget, options.budget) if name in limits)
            for name in {*created.budget, *options.budget}
        },
    )


def _skills(created: JobCreated, options: Options) -> tuple[str, ...]:
    """Return the skills of the job that goes on: all of those before, or the ones of them that are wanted.

    Raises UsageError for any other: it would let the conversation do more than before (rule 8).
    """
    before = _taken_up(created)
    more = [name for name in options.skills if before and name not in before]
    if more:
        reason = f"the conversation is under the skills {', '.join(before)}, and cannot come under {more[0]}"
        raise UsageError(reason, remedy="Name some of these or none, or start a new conversation.")
    return options.skills or before


def _taken_up(created: JobCreated) -> tuple[str, ...]:
    return tuple(pin.name for pin in created.skills if not pin.offered)


def _both(patterns: list[str], other: tuple[str, ...]) -> list[str]:
    """Patterns of what two lists of patterns both cover, as far as their text shows it."""
    tools = [*(tool for tool in patterns if within(tool, other)), *(tool for tool in other if within(tool, patterns))]
    return list(dict.fromkeys(tools))


def conversations_of(service: Service) -> Conversations:
    """Return the conversations of a service. Raise AttributeError if it is without this part."""
    conversations: Conversations = service.conversations
    return conversations


def open_conversations(opening: NounOpening) -> Conversations:
    """Return the conversations of a journal."""
    return Conversations(opening.parts.journal, opening.service.jobs)
