"""A job: where it stands and why, every step it took, and one of them whole."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.gateway.budget import Spent
from remit.jobs.state import TURN
from remit.journal.kinds import JobCreated
from remit.journal.lineage import origin_of
from remit.pages.actions import wanted
from remit.pages.inbox import answerable
from remit.pages.page import (
    INLINE,
    DiffLine,
    Page,
    PageRequest,
    PageView,
    ShownValue,
    brief,
    changes_of,
    dollars,
    shown,
)
from remit.pages.steps import MARKS, Only, StepListRow, Strip, chosen, drifted_in, groups, lines, strip_of
from remit.pages.timeline import Picture, Zoom, picture_of, scale_of, span_of, window_of
from remit.record.job_story import JobStory
from remit.record.states import JobState, standing
from remit.record.step import Drift, StepNarrative
from remit.record.teller import words
from remit.record.usage import priced
from remit.record.values import given_of
from remit.record.views import ConfirmationView, JobRow, OpenWait, StepRow, StepView, TaskError
from remit.redact import words_of
from remit.service.retry import CONTINUES, RETRY_OF
from remit.tools.names import wire_name

WHOLE: Final = 1_000
"""Rows up to which a page shows all of them."""
WINDOW: Final = 200
"""Rows of a page that cannot show all."""
_TICKET_RUN: Final = "ticket_run"
"""The recipe of a ticket's run, whose label says which ticket that is."""
_EVENTS: Final = 200
_SPOKEN: Final = 20
"""Messages of a prompt that a page shows one by one; the whole prompt is below them."""
_DEEDS: Final = 12
"""Writes that are listed above the steps."""
_READS: Final = 6
"""Tools that it only read with, which are named there."""
_ANSWERS: Final = {"approve": "approved", "deny": "denied"}
_RELATED: Final = 5
"""Jobs of a sort that are named beside one."""


class JobPageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a job."""

    step: str = ""
    """The step that is shown whole."""
    open: tuple[str, ...] = ()
    """The folded rows that are opened, by their first step."""
    only: Only = ""
    find: str = ""
    time: Literal["", "whole"] = ""
    """`whole`: idle time is not folded."""
    zoom: Zoom = ""
    """The part of the time that is shown."""
    from_: int = msgspec.field(default=1, name="from")
    """The first row of a window."""


class ScaleMark(msgspec.Struct, frozen=True):
    """A mark below the scale."""

    x: float
    text: str


class Spoken(msgspec.Struct, frozen=True):
    """A message of a prompt, as far as it is text."""

    role: str
    text: ShownValue


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """A call that changes something outside, in a line."""

    step: str
    name: str
    state: str
    mark: str
    tone: str
    args: str
    came: str
    """Its result, or why it did not happen."""
    allowed: str
    """The people or the rule that allowed it; empty: nothing did so far."""
    effect: str
    """Facts about the change."""


class Deeds(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of a job that change something outside, and those that only look."""

    writes: tuple[Deed, ...]
    more: int
    """Writes that are not listed."""
    reads: tuple[tuple[str, int], ...]
    """Tools that it only read with, and how often."""
    more_reads: int
    """Calls of further tools."""


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """A step, whole."""

    view: StepView
    narrative: StepNarrative | None
    part_of: tuple[str, str]
    """Place and name of the child recipe that it is a step of; both empty: of the job itself."""
    args: ShownValue | None
    messages: tuple[Spoken, ...]
    """The prompt of a model, message by message; the newest if they are many."""
    value: ShownValue | None
    answer: ShownValue | None
    """The text of a model's answer."""
    diff: tuple[DiffLine, ...]
    """The lines that it changed, as its result says."""
    curl: str
    """The same call over HTTP."""
    python: str
    """The same call from Python."""
    command: str
    """The command that shows the step at a terminal."""


class JobDetailPage(PageView, frozen=True, kw_only=True):
    """A job, whole."""

    template: ClassVar[str] = "job.html"
    row: JobRow
    deeds: Deeds
    known: bool
    """Whether this server can start its recipe."""
    created: JobCreated
    """As it was started."""
    created_at: int
    ended_at: int | None
    error: TaskError | None
    retry_of: str
    """The job whose steps it took over; empty: none."""
    fork_of: str
    """The job that recorded what it shares as a fork; empty: it is none."""
    retries: tuple[str, ...]
    """Jobs that took over its steps, newest first."""
    continues: str
    """The job whose conversation it continues with; empty: none."""
    continued: tuple[str, ...]
    """Jobs that continue its conversation, newest first."""
    ticket: str
    """The ticket whose steps it runs; empty: none."""
    events: int
    query: JobPageQuery
    standing: JobState
    reasons: tuple[tuple[str, int | None], ...]
    """Sentences: what it waits for, or how it ended; each with the time at which the wait ends, if it has one."""
    questions: tuple[ConfirmationView, ...]
    decisions: tuple[OpenWait, ...]
    """Steps whose outcome a person has to find out."""
    signals: tuple[OpenWait, ...]
    drifts: tuple[Drift, ...]
    models: str
    """Requests to models, their tokens and an estimate in dollars; empty: it made none."""
    until: int
    rows: tuple[StepListRow, ...]
    steps: int
    total: int
    """Rows in all; a window shows some of them."""
    picture: Picture | None
    """Its steps on one scale; None: there are too few for a picture."""
    strip: Strip | None
    """All rows at a glance, if a page does not show all."""
    marks: tuple[ScaleMark, ...]
    detail: Detail | None
    input: ShownValue
    """Without the nulls among its parts."""
    nulls: int
    """The number of those."""
    result: ShownValue | None


class EventRow(msgspec.Struct, frozen=True):
    """An event."""

    seq: int
    at: int
    kind: str
    words: str
    data: str


class EventsPage(PageView, frozen=True, kw_only=True):
    """The record itself, page by page."""

    template: ClassVar[str] = "events.html"
    job: str
    lines: tuple[EventRow, ...]
    next: int
    """Continue after this event; 0: this is the last page."""


class After(msgspec.Struct, frozen=True, kw_only=True):
    """Which events."""

    after: int = 0


async def job(request: PageRequest) -> JobDetailPage:
    """The job's page. Raises NotFoundError."""
    query: JobPageQuery = request.query
    name = await request.service.jobs.find(request.path["job"])
    questions = await request.service.confirmations.pending(name)
    known = await request.memory.story(name)
    story, until = known.story, known.story.ended_at or request.now
    drifted = drifted_in(story)
    window = window_of(query.zoom, story, until)
    scale = scale_of(story, until, fold=query.time != "whole", window=window)
    steps = known.steps if query.find else known.plain
    if query.zoom:
        steps = tuple(row for row in steps if not row.taken_from and scale.covers(*span_of(story, row, until)))
    rows = groups(chosen(steps, drifted, query.only, query.find), drifted, query.open)
    start = 0 if len(rows) <= WHOLE else max(0, min(query.from_ - 1, len(rows) - 1))
    shown_now = rows if len(rows) <= WHOLE else rows[start : start + WINDOW]
    input_value = given_of(known.input)
    stands, created = standing(known.row, request.now), story.history.created or JobCreated(kind="recipe", name="")
    retry_of, fork_of = origin_of(story.history.forked)
    return JobDetailPage(
        title=f"{known.row.title or known.row.name} {name[-6:]}",
        row=known.row,
        deeds=deeds_of(known, questions),
        known=known.row.name in request.service.recipes.names(),
        created_at=story.created_at,
        ended_at=story.ended_at,
        created=created,
        error=known.error,
        retry_of=retry_of,
        fork_of=fork_of,
        retries=await _labelled(request, RETRY_OF, name),
        continues=_earlier(known.input),
        continued=await _labelled(request, CONTINUES, name),
        ticket=known.row.labels.get("ticket", "") if known.row.name == _TICKET_RUN else "",
        events=story.events,
        query=query,
        standing=stands,
        reasons=_why(known, stands),
        questions=tuple(questions),
        decisions=tuple(wait for wait in known.waits if wait.attempt or wait.key == "undo"),
        signals=tuple(wait for wait in known.waits if wait.type == "signal"),
        drifts=tuple(story.drifts),
        models=_models(story.history.spending.spent),
        until=until,
        rows=tuple(_asking(row, questions) for row in lines(shown_now, story.told, scale, until, story.queued)),
        steps=len(known.plain),
        total=len(rows),
        picture=picture_of(story, known.plain, scale, until) if len(known.plain) > 1 else None,
        strip=strip_of(rows) if len(rows) > WHOLE else None,
        marks=tuple(ScaleMark(round(fold.x, 1), "") for fold in scale.folds),
        detail=await _detail(request, known, query.step) if query.step else None,
        input=shown(input_value),
        nulls=len(known.input) - len(input_value) if isinstance(input_value, dict) else 0,
        result=shown(known.result) if known.completed else None,
    )


def _models(spent: Spent) -> str:
    if not spent.calls:
        return ""
    cost = priced(spent.cost if spent.unpriced < spent.calls else None, spent.unpriced, dollars)
    return f"{spent.calls:,} request{'s' * (spent.calls != 1)}, {spent.tokens:,} tokens, {cost}"


async def _labelled(request: PageRequest, label: str, job: str) -> tuple[str, ...]:
    """The newest jobs whose label names this one."""
    return tuple(row.job for row in await request.service.jobs.rows(labels={label: job}, limit=_RELATED))


def _earlier(args: Any) -> str:
    """The job whose conversation an agent was given; empty for what was given none."""
    earlier = args.get("earlier") if isinstance(args, dict) else None
    job = earlier.get("job") if isinstance(earlier, dict) else None
    return job if isinstance(job, str) else ""


async def moved(request: PageRequest) -> object:
    """Return what stays equal while nothing happens to the job."""
    row = await request.service.jobs.row(await request.service.jobs.find(request.path["job"]))
    return row, await answerable(request.service, request.access)


async def events(request: PageRequest) -> EventsPage:
    """A page of the record. Raises NotFoundError."""
    name = await request.service.jobs.find(request.path["job"])
    stream = request.service.streams.name(name)
    read_events = await request.service.streams.events(stream, request.query.after)
    shown_now = read_events[:_EVENTS]
    return EventsPage(
        title=f"Events of {name}",
        job=name,
        lines=tuple(
            EventRow(event.seq, event.at, event.kind, words(event), event.data.decode("utf-8", "replace"))
            for event in shown_now
        ),
        next=shown_now[-1].seq if len(read_events) > _EVENTS else 0,
    )


async def _detail(request: PageRequest, known: JobStory, step: str) -> Detail:
    view = await request.service.steps.view_in(known.story, known.row.job, step)
    return Detail(
        view=view,
        narrative=view.narrative,
        part_of=_part_of(known, step),
        args=shown(view.args) if view.args is not None else None,
        messages=_messages(view),
        answer=shown(view.value["content"]) if _is_answer(view) else None,
        diff=_diff(view),
        value=shown(view.value) if view.value is not None or view.row.ok else None,
        curl=_curl(view),
        python=_python(view),
        command=f"remit show {known.row.job} {shlex.quote(step)}",
    )


def _messages(view: StepView) -> tuple[Spoken, ...]:
    if view.narrative is None or view.narrative.llm_invocation is None or "messages" not in (view.args or ()):
        return ()
    messages = view.args["messages"][-_SPOKEN:]
    return tuple(Spoken(message["role"], shown(message["content"])) for message in messages if message["content"])


def _is_answer(view: StepView) -> bool:
    """Return whether a model answered with a text."""
    narrative = view.narrative
    return narrative is not None and narrative.llm_invocation is not None and bool((view.value or {}).get("content"))


def _diff(view: StepView) -> tuple[DiffLine, ...]:
    narrative = view.narrative
    return (
        changes_of(f"\n{narrative.state_diff.diff}")
        if narrative is not None and narrative.state_diff is not None
        else ()
    )


def deeds_of(known: JobStory, questions: list[ConfirmationView]) -> Deeds:
    """Return what a job did, its writes first; what `questions` ask about is to come."""
    calls = [row for row in known.plain if row.meta.tool_name]
    writes = [row for row in calls if _matters(row)]
    reads = Counter(row.meta.tool_name for row in calls if not _matters(row)).most_common()
    narratives = [step for row in writes[:_DEEDS] if (step := known.story.told(row.step)) is not None]
    return Deeds(
        writes=tuple(_deed(step, wanted(questions, step.step)) for step in narratives),
        more=len(writes) - len(narratives),
        reads=tuple(reads[:_READS]),
        more_reads=sum(number for _, number in reads[_READS:]),
    )


def _matters(row: StepRow) -> bool:
    """Return whether a call writes, may write, waits for an answer or was refused."""
    risk = row.meta.risk_level
    return risk != "read_only" if risk else row.state in {"waiting", "blocked"}


def _deed(narrative: StepNarrative, args: Any) -> Deed:
    mark, tone = MARKS[narrative.state]
    answers = [answer for confirmation in narrative.confirmations for answer in confirmation.decisions]
    people = [f"{_ANSWERS.get(answer.decision, answer.decision)} by {answer.by}" for answer in answers if answer.by]
    return Deed(
        step=narrative.step,
        name=narrative.name.removeprefix("tool."),
        state=narrative.state,
        mark=mark,
        tone=tone,
        args=_plain(narrative.args_preview) or (words_of(args) if args is not None else ""),
        came=f"{narrative.code}: {narrative.reason}" if narrative.code else _plain(narrative.result_preview),
        allowed=", ".join(people) or (f"rule {narrative.rule_id}" if narrative.rule_id else ""),
        effect=narrative.state_diff.words if narrative.state_diff is not None else "",
    )


def _plain(preview: str) -> str:
    """A preview as names and values; one that was cut stays as it is."""
    try:
        value = msgspec.json.decode(preview)
    except msgspec.DecodeError:
        return preview
    return words_of(value) if isinstance(value, dict) else value if isinstance(value, str) else preview


def _part_of(known: JobStory, step: str) -> tuple[str, str]:
    children, above = known.story.history.children, step.rpartition(".")[0]
    while above and above not in children:
        above = above.rpartition(".")[0]
    return (above, children[above].name) if above else ("", "")


def _asking(row: StepListRow, questions: list[ConfirmationView]) -> StepListRow:
    """The row of a call that is asked about tells what it would be given: nothing of it is recorded in the job yet."""
    args = wanted(questions, row.step)
    return row if row.note or args is None else msgspec.structs.replace(row, note=brief(args))


def _curl(view: StepView) -> str:
    """The same call over HTTP; empty for a step that is not a call, or one too large for a command line."""
    if not view.row.meta.tool_name or view.args is None:
        return ""
    body = msgspec.json.encode({"tool_name": wire_name(view.row.meta.tool_name), "args": view.args}).decode()
    if len(body) > INLINE:
        return ""
    quoted = body.replace("'", "'\\''")
    return f"curl -X POST \"$URL/v1/tools/execute\" -H 'content-type: application/json' -d '{quoted}'"


def _python(view: StepView) -> str:
    """The same call from Python; empty where `_curl` is."""
    name = view.row.meta.tool_name
    if not name or not isinstance(view.args, dict):
        return ""
    call = f"await remit.call({name!r}, {view.args!r})"
    return call if len(call) <= INLINE else ""


def _why(view: JobStory, stands: JobState) -> tuple[tuple[str, int | None], ...]:
    if view.error is not None:
        where = f"Step {view.error.step}: " if view.error.step else ""
        return ((f"{where}{view.error.message}", None),)
    sentences = tuple((_waits(wait), _until(wait)) for wait in view.waits)
    return sentences or (((stands.reason, None),) if stands.reason else ())


def _until(wait: OpenWait) -> int | None:
    return wait.due_at if wait.type == "timer" and not wait.key.startswith("retry:") else None


def _waits(wait: OpenWait) -> str:
    if wait.type == "signal":
        return f"Step {wait.step} waits for the signal {wait.key}."
    if wait.type == "timer" and wait.key.startswith(TURN):
        return f"Step {wait.step} waits for its turn: {wait.reason}."
    if wait.type == "timer":
        again = wait.key.startswith("retry:")
        return f"Step {wait.step} is tried again." if again else f"Step {wait.step} waits for a timer."
    if wait.attempt or wait.key == "undo":
        return f"Step {wait.step} needs a decision: {wait.reason}"
    if wait.reason == "approval":
        return f"Step {wait.step} waits for approval."
    return f"Step {wait.step} asks: {wait.reason}"


PAGES: Final = (
    Page(path="/jobs/{job}", scope="read", handler=job, query=JobPageQuery, live="events", mark=moved),
    Page(path="/jobs/{job}/events", scope="read", handler=events, query=After),
)
