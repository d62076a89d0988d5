"""What pages show of a job or session: its record, read once and carried on from where it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.errors import ChainBrokenError, PayloadErasedError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.ids import trace_id
from remit.jobs.inbox import Inbox
from remit.jobs.state import stream_of
from remit.journal.event import UNSET, HeadQuery
from remit.journal.kinds import JobCompleted
from remit.record.heads import CALL, PART, head_of, stream_named
from remit.record.rows import open_waits, step_rows
from remit.record.story import Story
from remit.record.task import artifacts, task_error, trace_lines
from remit.record.untrusted import arguments
from remit.record.values import value_of
from remit.record.views import JobRow, JobView, OpenWait, StepRow, TaskError, job_row

if TYPE_CHECKING:
    from remit.jobs.state import History
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.record.step import StepNarrative

_RECENT: Final = 10_000


class JobStory:
    """A job as it is at one moment, and everything that is known of its steps."""

    def __init__(self, row: JobRow) -> None:
        self.row = row
        self.story = Story()
        self.steps: tuple[StepRow, ...] = ()
        """Without previews, which are made for those that are shown."""
        self.waits: tuple[OpenWait, ...] = ()
        self.error: TaskError | None = None
        """Why it failed, was cancelled, or cannot continue the code at hand."""
        self.input: Any = None
        self.result: Any = None
        self._seq = 0
        self._asked: dict[str, int] = {}
        """How far each question was read."""

    @property
    def completed(self) -> bool:
        """Whether it ended well."""
        return isinstance(self.story.history.end, JobCompleted)

    def previewed(self) -> tuple[StepRow, ...]:
        """The steps with their previews."""
        return step_rows(self.story)

    async def carry_on(self, journal: Journal) -> None:
        """Read what came since. Raises NotFoundError."""
        head = await head_of(journal, self.row.job)
        before = self.story.events
        fresh = await journal.read(stream_of(self.row.job), before)
        # Another request may have read them meanwhile; no await from here to the end of the fold.
        if head.seq >= self._seq:
            self.row, self._seq = job_row(head), head.seq
        self.story.read(event for event in fresh if self.story.events < event.seq <= head.seq)
        history = self.story.history
        if self.story.events != before or not before:
            self.steps = step_rows(self.story, _no_preview)
        await ask_about(journal, self.story, [stream_of(self.row.job)], self._asked)
        self.waits = open_waits(history, await decided_since(journal, self.row.job, history))
        self.error = task_error(history, self.row)
        created, end = history.created, history.end
        # Never kept: they may be erased.
        self.input = await value_of(journal, created.input, created.input_blob) if created else None
        self.result = await value_of(journal, end.result, end.result_blob) if isinstance(end, JobCompleted) else None


def _no_preview(*_: object) -> str:
    return ""


async def story_of(journal: Journal, identifier: str) -> Story:
    """The story of a job or session, with who allowed what. Raises NotFoundError."""
    await head_of(journal, identifier)
    streams = [stream_named(identifier), *await beside(journal, identifier)]
    # Before its questions: a call that ran is never shown as one that waits for approval.
    events: list[Event] = [event for stream in streams for event in await journal.read(stream)]
    if len(streams) > 1:
        events.sort(key=lambda event: event.at)  # stable: each stream keeps its order
    story = Story(events)
    await ask_about(journal, story, streams, {})
    return story


async def decided_since(journal: Journal, job: str, history: History) -> set[tuple[str, int]]:
    """The attempts of uncertain steps, as (step, attempt), that people decided on and the job has not seen yet."""
    doubts = [(step, attempt) for step in history.calls if (attempt := history.in_doubt(step)) is not None]
    if not doubts:
        return set()
    inbox = Inbox(journal, job)
    try:
        await inbox.refresh()
    except ChainBrokenError:
        return set()  # what is there decides nothing; the job's worker and `remit verify` name it
    return {(step, attempt) for step, attempt in doubts if inbox.decision(step, attempt) is not None}


async def whole(journal: Journal, step: StepNarrative) -> StepNarrative:
    """A step with its untrusted arguments where they are too long for their event; as it is if they are gone."""
    told = step.untrusted
    if told is None or told.kept is None:
        return step
    try:
        recorded = await journal.value(UNSET, told.kept)
    except (PayloadErasedError, ChainBrokenError):
        return step  # what is left of them is the preview
    found = arguments(recorded or b"[]")
    return msgspec.structs.replace(step, untrusted=msgspec.structs.replace(told, arguments=found.arguments, kept=None))


async def ask_about(journal: Journal, story: Story, streams: list[str], known: dict[str, int]) -> None:
    """Read the questions of these streams; `known` says how far each was read before, and afterwards how far now."""
    for stream in streams:
        query = HeadQuery(kind=CONFIRMATION, prefix=f"{stream}/", limit=_RECENT)
        for head in await journal.heads(query):
            if known.get(head.stream) != head.seq:
                story.ask(head.labels.get("id", head.stream), await journal.read(head.stream))
                known[head.stream] = head.seq


async def beside(journal: Journal, identifier: str) -> list[str]:
    """The other streams of a session: of processes that joined it, and of calls with streams of their own."""
    if not identifier.startswith("ses_"):
        return []
    parts = HeadQuery(kind=PART, prefix=f"{stream_named(identifier)}/", limit=_RECENT)
    calls = HeadQuery(kind=CALL, labels={"session": identifier}, limit=_RECENT)
    heads = [*await journal.heads(parts), *await journal.heads(calls)]
    return [head.stream for head in reversed(heads)]


async def job_view(journal: Journal, job: str) -> JobView:
    """One job, whole, as it is at one moment. Raises NotFoundError."""
    head = await head_of(journal, job)
    row, events = job_row(head), (await journal.read(stream_of(job)))[: head.seq]
    history = (story := Story(events)).history
    created, end = history.created, history.end
    done = end if isinstance(end, JobCompleted) else None
    return JobView(
        ok=done is not None,
        task_type=row.name,
        artifacts=artifacts(history),
        trace_lines=trace_lines(events),
        job=job,
        state=row.state,
        waiting_for=row.waiting_for,
        row=row,
        kind=created.kind if created else "",
        principal=created.principal if created else "",
        execution_version=created.execution_version if created else "",
        ran_version=history.under,
        module=created.module if created else "",
        input=await value_of(journal, created.input, created.input_blob) if created else None,
        result=await value_of(journal, done.result, done.result_blob) if done else None,
        error=task_error(history, row),
        steps=step_rows(story),
        waits=open_waits(history, await decided_since(journal, job, history)),
        events=head.seq,
        retry_of=history.forked.job if history.forked else "",
        trace_id=trace_id(job),
    )
