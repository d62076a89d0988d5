"""A job or session as faces show it: its record, read once and carried on from where it was left.

A job as a task result: its error, what it left behind, and its trace in lines.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import ChainBrokenError, PayloadErasedError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.ids import trace_id
from remit.jobs.inbox import JobInbox
from remit.jobs.skills import pins_of
from remit.jobs.state import ENDED, UNDO_DECISION, JobHistory, WaitRecord, doubt_of, stream_of, stuck_by
from remit.journal.event import UNSET, HeadQuery
from remit.journal.kinds import CallContinued, CallOpened, ErrorInfo, JobCancelled, JobCompleted, JobFailed, decode
from remit.journal.lineage import origin_of, whole
from remit.journal.scan import every_head
from remit.record.heads import CALL, PART, head_of, stream_named
from remit.record.question import arguments
from remit.record.step import CallLines, Preview, StepNarrative, lines_of, shown
from remit.record.story import EventStory
from remit.record.teller import words
from remit.record.values import value_of
from remit.record.views import Artifact, JobRow, JobView, OpenWait, StepMeta, StepRow, TaskError, job_row

if TYPE_CHECKING:
    from remit.journal.blobs import BlobRef
    from remit.journal.event import Event, StreamHead
    from remit.journal.journal import Journal


_LINES: Final = 1_000


def task_error(history: JobHistory, row: JobRow) -> TaskError | None:
    """Return why a job failed, was cancelled, or cannot continue the code at hand; None if it did not."""
    end, stuck = history.end, history.stuck
    if isinstance(end, JobFailed):
        return error_view(end.error)
    if isinstance(end, JobCancelled):
        reason = f": {end.reason}" if end.reason else ""
        by = f" by {end.by}" if end.by else ""
        return TaskError(code=Code.JOB_CANCELLED.name, message=f"cancelled{by}{reason}")
    if row.stuck and stuck is not None and stuck.correlation_key == stuck_by(row.code):
        return error_view(ErrorInfo(code=row.code, message=stuck.reason, step=stuck.step))
    return None


def error_view(error: ErrorInfo) -> TaskError:
    """A recorded error as faces show it."""
    return TaskError(
        code=error.code,
        message=error.message,
        retryable=error.retryable or Code.recorded(error.code, Code.JOB_FAILED).retryable,
        step=error.step,
        remedy=error.remedy,
        cause=error.cause,
        frames=error.frames,
    )


def artifacts(history: JobHistory) -> tuple[Artifact, ...]:
    """The evidence of every call, in order."""
    return tuple(
        Artifact(
            step=step,
            kind=item.get("kind", ""),
            source=item.get("source", ""),
            hash=item.get("hash", ""),
            bytes=item.get("bytes", 0),
            storage=item.get("storage", "omitted"),
        )
        for step, record in history.calls.items()
        for item in record.evidence
    )


def trace_lines(events: Sequence[Event]) -> tuple[str, ...]:
    """An event a line, with the time left out; a last line says how many more there are."""
    lines = [f"{event.kind} {words(event)}".rstrip() for event in events[:_LINES]]
    more = len(events) - len(lines)
    return (*lines, f"… and {more} more") if more else tuple(lines)


def step_rows(story: EventStory, preview: Preview = shown) -> tuple[StepRow, ...]:
    """Every effect in the order in which it began; most of the time goes into previews."""
    return tuple(step_row(step) for step in story.tell(preview))


def step_row(narrative: StepNarrative) -> StepRow:
    """A step of the story as a row."""
    tool, model = narrative.tool_invocation, narrative.llm_invocation
    kind, _, name = narrative.name.partition(".")
    return StepRow(
        step=narrative.step,
        name=narrative.name,
        ok=narrative.state == "ok",
        duration_ms=narrative.duration_us / 1_000,
        error_code=narrative.code,
        meta=StepMeta(
            args_preview=narrative.args_preview,
            result_preview=narrative.result_preview,
            provider_id=tool.provider if tool else model.provider if model else "",
            risk_level=narrative.risk_level,
            capability_level=narrative.capability_level,
            tool_name=name if kind == "tool" else "",
        ),
        state=narrative.state,
        reason=narrative.reason,
        remedy=narrative.remedy,
        attempt=narrative.attempt,
        confirmation=narrative.confirmation,
        undone=narrative.undone,
        started_at=narrative.started_at,
        taken_from=narrative.taken_from,
    )


def open_waits(history: JobHistory, decided: Container[tuple[str, int]] = ()) -> tuple[OpenWait, ...]:
    """Return the waits of a job that go on; `decided`: attempts of steps that people have decided on since."""
    waits = (
        _open(history, step, key, record)
        for (step, key), record in history.waits.items()
        if record.completed is None and history.end is None and (key == UNDO_DECISION or not _ended(history, step))
    )
    return tuple(wait for wait in waits if not (wait.attempt and (wait.step, wait.attempt) in decided))


def _ended(history: JobHistory, step: str) -> bool:
    """Return whether a call that had to wait has come to its end all the same, as its provider could tell."""
    if step in history.models:
        return history.models[step].ended
    return step in history.calls and history.calls[step].ended


def _doubted(history: JobHistory, step: str, key: str) -> int:
    attempt = history.in_doubt(step)
    return attempt if attempt is not None and key == doubt_of(attempt) else 0


def _open(history: JobHistory, step: str, key: str, record: WaitRecord) -> OpenWait:
    attempt = _doubted(history, step, key)
    call = history.calls.get(step)
    sent = call.started if attempt and call is not None else None
    return OpenWait(
        step=step,
        type=record.waiting.wait_type,
        key=key,
        reason=record.waiting.reason,
        due_at=record.waiting.due_at,
        attempt=attempt,
        idempotency_key=sent.idempotency_key if sent is not None else "",
    )


_RECENT: Final = 10_000


class JobStory:
    """A job as it is at one moment, and everything that is known of its steps."""

    def __init__(self, row: JobRow) -> None:
        self.job = row.job
        self.row = row
        self.story = EventStory()
        """Its events so far; anyone who reads the job reads them into it."""
        self.decided: Container[tuple[str, int]] = frozenset()
        """Attempts of steps that people decided on and the job has not seen yet."""
        self.plain: tuple[StepRow, ...] = ()
        """Its steps without previews, which are made for those that are shown."""
        self.input: Any = None
        self.result: Any = None
        self._seq = 0
        self._questions: dict[str, int] = {}
        """The position up to which each question was read."""

    @property
    def history(self) -> JobHistory:
        """Return what is recorded of it so far."""
        return self.story.history

    @property
    def steps(self) -> tuple[StepRow, ...]:
        """Its steps with their previews."""
        return step_rows(self.story)

    @property
    def waits(self) -> tuple[OpenWait, ...]:
        """Return what it waits for."""
        return open_waits(self.history, self.decided)

    @property
    def error(self) -> TaskError | None:
        """Return why it failed, was cancelled, or cannot continue the code at hand."""
        return task_error(self.history, self.row)

    @property
    def module(self) -> str:
        """The Python file that its recipe came from, if a person named that."""
        return self.history.created.module if self.history.created else ""

    @property
    def completed(self) -> bool:
        """Return whether it ended well."""
        return isinstance(self.history.end, JobCompleted)

    @property
    def ended(self) -> bool:
        """Return whether nothing more will happen to it."""
        return self.row.state in ENDED

    @property
    def risky(self) -> bool:
        """Return whether a call with side effects is under way: cut short, its outcome would be unknown (rule 3)."""
        return any(
            record.started is not None and record.finished is None and not record.started.repeatable
            for record in self.history.calls.values()
        )

    def idle(self, now: int, served: Container[str]) -> bool:
        """Say whether nothing happens here by itself, as for a job of a route that is not `served`."""
        row = self.row
        if row.state != "waiting":
            return False
        if row.due_at is not None and row.due_at <= now:
            return row.stuck and row.route not in served
        return row.stuck or (bool(self.waits) and all(wait.type != "timer" for wait in self.waits))

    async def carry_on(self, journal: Journal) -> None:
        """Read what came since. Raises NotFoundError."""
        head = await head_of(journal, self.job)
        before = self.story.events
        fresh = await journal.read(stream_of(self.job), before)
        fresh = fresh if before else await whole(journal, fresh)
        # Another request may have read them meanwhile; no await from here to the end of the fold.
        if head.seq >= self._seq:
            self.row, self._seq = job_row(head), head.seq
        begins = not self.story.events
        self.story.read(
            event
            for event in fresh
            if (self.story.events < event.seq <= head.seq if event.stream == head.stream else begins)
        )
        if self.story.events != before or not before:
            self.plain = step_rows(self.story, _no_preview)
        await ask_about(journal, self.story, [stream_of(self.job)], self._questions)
        await self.load(journal)

    async def load(self, journal: Journal) -> None:
        """Read what is never kept between two looks: input and result, which may be erased, and decisions."""
        self.decided = await decided_since(journal, self.job, self.history)
        created, end = self.history.created, self.history.end
        self.input = await value_of(journal, created.input, created.input_blob) if created else None
        self.result = await value_of(journal, end.result, end.result_blob) if isinstance(end, JobCompleted) else None


def _no_preview(*_: object) -> str:
    return ""


async def story_of(journal: Journal, identifier: str) -> EventStory:
    """The story of a job or session, with who allowed what. Raises NotFoundError."""
    await head_of(journal, identifier)
    streams = [stream_named(identifier), *await beside(journal, identifier)]
    events: list[Event] = []
    for stream in streams:  # before its questions: a call that ran is never shown as one that waits for approval
        events += _since_continued(identifier, await whole(journal, await journal.read(stream)))
    if len(streams) > 1:
        events.sort(key=lambda event: event.at)  # stable: each stream keeps its order
    story = EventStory(events)
    await ask_about(journal, story, streams, {})
    return story


def _since_continued(session: str, events: list[Event]) -> list[Event]:
    """The events of a stream; of a call that another session made first, from the moment on when this one did."""
    opened = decode(events[0].kind, events[0].data) if events else None
    if not isinstance(opened, CallOpened) or session in {opened.session, opened.call}:
        return events
    for place, event in enumerate(events):
        payload = decode(event.kind, event.data)
        if isinstance(payload, CallContinued) and payload.session == session:
            return events[place:]
    return []


async def decided_since(journal: Journal, job: str, history: JobHistory) -> set[tuple[str, int]]:
    """The attempts of uncertain steps, as (step, attempt), that people decided on and the job has not seen yet."""
    doubts = [(step, attempt) for step in history.calls if (attempt := history.in_doubt(step)) is not None]
    if not doubts:
        return set()
    inbox = JobInbox(journal, job)
    try:
        await inbox.refresh()
    except ChainBrokenError:
        return set()  # what is there decides nothing; the job's worker and `remit verify` name it
    return {(step, attempt) for step, attempt in doubts if inbox.decision(step, attempt) is not None}


async def whole_step(journal: Journal, step: StepNarrative) -> StepNarrative:
    """A step with what is too long for its events, as far as it is still there: untrusted arguments, changes, log."""
    diff = step.state_diff
    if diff is not None and diff.kept is not None:
        recorded = await _kept(journal, diff.kept)
        step = msgspec.structs.replace(step, state_diff=diff.told_by(recorded or b"null"))
    log = step.log
    if log is not None and log.kept:
        more = [each for ref in log.kept for each in lines_of(await _kept(journal, ref) or b"[]")]
        lines = tuple(sorted((*log.lines, *more), key=lambda each: each.at))
        step = msgspec.structs.replace(step, log=CallLines(lines=lines, left_out=log.left_out))
    stored = step.untrusted
    if stored is None or stored.kept is None:
        return step
    recorded = await _kept(journal, stored.kept)
    if recorded is None:
        return step  # what is left of them is the preview
    untrusted = arguments(recorded)
    return msgspec.structs.replace(
        step, untrusted=msgspec.structs.replace(stored, arguments=untrusted.arguments, kept=None)
    )


async def _kept(journal: Journal, ref: BlobRef) -> bytes | None:
    try:
        return await journal.value(UNSET, ref)
    except (PayloadErasedError, ChainBrokenError):
        return None


async def ask_about(journal: Journal, story: EventStory, streams: list[str], known: dict[str, int]) -> None:
    """Read the questions of these streams; `known` says how far each was read before, and afterwards how far now."""
    for stream in streams:
        query = HeadQuery(kind=CONFIRMATION, prefix=f"{stream}/", limit=_RECENT)
        for head in await journal.heads(query):
            if known.get(head.stream) != head.seq:
                story.ask(head.labels.get("id", head.stream), await journal.read(head.stream))
                known[head.stream] = head.seq


async def beside(journal: Journal, identifier: str) -> list[str]:
    """The other streams of a session: of processes that joined it, and of calls with streams of their own.

    A call that it made again, and another session first, is among them.
    """
    if not identifier.startswith("ses_"):
        return []
    parts = HeadQuery(kind=PART, prefix=f"{stream_named(identifier)}/")
    calls = HeadQuery(kind=CALL, labels={"session": identifier})
    streams = [head.stream for query in (parts, calls) async for head in every_head(journal, query)]
    streams.reverse()
    for stream in [stream_named(identifier), *streams]:
        head = await journal.head(stream) if stream.startswith(stream_named(identifier)) else None
        if head is not None:
            streams += [stream async for stream in _continued_in(journal, head)]
    return list(dict.fromkeys(streams))


async def _continued_in(journal: Journal, head: StreamHead) -> AsyncIterator[str]:
    """Give the streams of calls that a stream of a session says were made again in it."""
    async for events in journal.pages(head):
        for event in events:
            payload = decode(event.kind, event.data) if event.kind == CallContinued.KIND else None
            if isinstance(payload, CallContinued):
                yield stream_named(payload.call)


async def job_view(journal: Journal, job: str) -> JobView:
    """One job, whole, as it is at one moment. Raises NotFoundError."""
    head = await head_of(journal, job)
    events = (await journal.read(stream_of(job)))[: head.seq]
    known = JobStory(row := job_row(head))
    known.story.read(await whole(journal, events))
    await known.load(journal)
    history, created = known.history, known.history.created
    retry_of, fork_of = origin_of(history.forked)
    return JobView(
        ok=known.completed,
        task_type=row.name,
        artifacts=artifacts(history),
        trace_lines=trace_lines(events),
        job=job,
        state=row.state,
        waiting_for=row.waiting_for,
        row=row,
        kind=created.kind if created else "",
        principal=history.principal,
        execution_version=created.execution_version if created else "",
        ran_version=history.under,
        schedule=(created.schedule if created else None) or msgspec.UNSET,
        module=known.module,
        skills={pin.name: pin.digest for pin in pins_of(created)} or msgspec.UNSET,
        input=known.input,
        result=known.result,
        error=known.error,
        steps=known.steps,
        waits=known.waits,
        events=head.seq,
        retry_of=retry_of,
        fork_of=fork_of or msgspec.UNSET,
        trace_id=trace_id(job),
    )
