"""The facts of a job or session while its events are read: told whole, or step by step. Pure.

The times of a job: when it was queued, worked, waited, or lay where a worker had left it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.jobs.state import JobHistory
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.journal.lineage import EventOrigins, origin_of
from remit.record.question import read_question
from remit.record.step import Continued, Drift, Preview, StepNarrative, Waited, shown
from remit.record.teller import AttemptFacts, ChildFacts, Drifted, StepFacts, Teller, children, drift_of, state_of

SegmentKind = Literal["queued", "working", "waiting", "stuck", "interrupted"]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time."""

    kind: SegmentKind
    """`stuck`: the code at hand could not go on; `interrupted`: no worker held the job, which waited for nothing."""
    since: int
    """Microseconds since the Unix epoch."""
    until: int | None
    """None: it goes on."""


class Timeline:
    """The times of a job as far as its events are read."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self.kind: SegmentKind = "queued"
        self._since: int | None = None
        self._last = 0
        self._calls: set[str] = set()
        self._waits: set[tuple[str, str]] = set()
        self._ended = False

    def add(self, payload: k.Payload, at: int, *, taken: bool = False) -> None:
        """Read one more event; one that was `taken` from another job is no work of this one."""
        if taken:
            self._fold(payload)
            return
        if self._since is None:
            self._since = at
        elif isinstance(payload, k.RecoveryStarted):
            self._turn("interrupted", self._last)
            self._turn("working", at)
        else:
            self._fold(payload)
            self._turn(self._doing(payload), at)
        self._last = at
        if isinstance(payload, k.JobCompleted | k.JobFailed | k.JobCancelled):
            self._ended = True

    def segments(self, *, stopped: bool = False) -> tuple[Segment, ...]:
        """Say the segments, with the last stretch; nothing has worked on one that is `stopped` since its last event."""
        if stopped and self.kind == "working" and self._since is not None and not self._ended:
            left = Segment(kind="interrupted", since=self._last, until=None)
            return (*self._segments, *_stretch("working", self._since, self._last), left)
        last = () if self._since is None else _stretch(self.kind, self._since, self._last if self._ended else None)
        return (*self._segments, *last)

    @property
    def queued(self) -> tuple[int, int]:
        """From when to when it was queued before its first work; of no length if it was not, or still is."""
        first = self._segments[0] if self._segments else None
        return (first.since, first.until) if first and first.kind == "queued" and first.until else (0, 0)

    def _fold(self, payload: k.Payload) -> None:
        match payload:
            case k.ToolInvocationStarted():
                self._calls.add(payload.step)
            case k.ToolInvocationFinished() | k.GateRefused():
                self._calls.discard(payload.step)
            case k.JobWaiting():
                self._calls.discard(payload.step)
                self._waits.add((payload.step, payload.correlation_key))
            case k.WaitCompleted() | k.TimerFired():
                self._waits.discard((payload.step, payload.correlation_key))
            case _:
                pass

    def _doing(self, payload: k.Payload) -> SegmentKind:
        if isinstance(payload, k.JobWaiting) and payload.correlation_key.startswith("stuck:"):
            self._waits.discard((payload.step, payload.correlation_key))
            return "stuck"
        if isinstance(payload, k.PlanGenerated | k.JobForked):
            return "queued"
        return "waiting" if self._waits and not self._calls else "working"

    def _turn(self, kind: SegmentKind, at: int) -> None:
        if kind != self.kind:
            self._segments += _stretch(self.kind, self._since or 0, at)
            self.kind, self._since = kind, at


def _stretch(kind: SegmentKind, since: int, until: int | None) -> tuple[Segment, ...]:
    return (Segment(kind=kind, since=since, until=until),) if until is None or until > since else ()


_ABOUT: Final = (
    k.JobForked,
    k.StepArgsGiven,
    k.UndoDeclared,
    k.StepCompensated,
    k.VersionMismatchRecorded,
    k.ModelDriftRecorded,
)
"""Events that name a step and are no part of what it did."""


class EventStory:
    """A job's events, read once and carried on as more of them come."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.history = JobHistory()
        self.steps: dict[str, StepFacts] = {}
        """The facts of each step, in the order in which they began."""
        self.drifts: list[Drift] = []
        self.recoveries: list[Recovery] = []
        self.events = 0
        """The number that were read; the newest has this number."""
        self.size = 0
        """Bytes of their data."""
        self.stream = ""
        self.created_at = self.updated_at = 0
        self.ended_at: int | None = None
        self.session: k.SessionOpened | None = None
        self._timeline = Timeline()
        self._origins = EventOrigins()
        self._taken_from = ""
        """The job that the event at hand was taken from."""
        self._children: tuple[int, dict[str, ChildFacts]] = 0, {}
        self.read(events)

    def read(self, events: Iterable[Event]) -> None:
        """Read more events, in order."""
        for event in events:
            if not self.events:
                self.stream, self.created_at = event.stream, event.at
            if event.stream == self.stream or self.session:
                self.updated_at = event.at
                self.events += 1
                self.size += len(event.data)
            payload = k.decode(event.kind, event.data)
            at, self._taken_from = self._origins.of(payload, event)
            if payload is not None:
                self.history.take(payload)
                self._timeline.add(payload, at, taken=bool(self._taken_from))
                self._read(payload, at)

    def ask(self, identifier: str, events: Iterable[Event]) -> None:
        pair = read_question(identifier, events)
        if pair is not None and pair[0] in self.steps:
            step, question = pair
            self._step(step, question.asked_at).questions[identifier] = question

    def told(self, step: str) -> StepNarrative | None:
        """One step, whole; None if there is none."""
        track = self.steps.get(step)
        if track is None or not self._is_step(step, track):
            return None
        return self._told(step, track, Teller(self.history, self.drifts))

    def span(self, step: str) -> tuple[int, int]:
        """Return the times of the first and the last event of a step, in microseconds since the Unix epoch."""
        track = self.steps[step]
        return track.since, track.until

    def busy(self, until: int) -> Iterator[tuple[int, int]]:
        """Stretches of work of this job itself; an attempt that is under way goes on `until` then."""
        for step in self.steps.values():
            if step.taken_from:
                continue
            if not step.tries:
                yield step.since, step.since
            for attempt in step.tries:
                runs = attempt.until is None and self.ended_at is None and not step.waiting
                yield attempt.since, attempt.until or (until if runs else attempt.since)

    @property
    def queued(self) -> tuple[str, int, int] | None:
        """Its first step, and from when to when the job waited for a worker before that; None if it did not."""
        since, until = self._timeline.queued
        live = (step for step, track in self.steps.items() if not track.taken_from and self._is_step(step, track))
        first = next(live, None)
        return (first, since, until) if first is not None and until > since else None

    @property
    def stuck(self) -> k.JobWaiting | None:
        """Return why the code at hand could not continue the job, if nothing has happened since."""
        return self.history.stuck if self._timeline.kind == "stuck" else None

    @property
    def name(self) -> str:
        created = self.history.created
        return self.session.client if self.session else created.name if created else ""

    @property
    def principal(self) -> str:
        """Return the principal in whose name it runs."""
        return self.session.principal if self.session else self.history.principal

    def narrative(self, *, stopped: bool = False) -> Narrative:
        """Everything together; `stopped`: no worker has the job, although it waits for nothing."""
        history = self.history
        created = history.created or k.JobCreated(kind="recipe", name="")
        end = history.end
        retry_of, fork_of = origin_of(history.forked)
        return Narrative(
            job=self.stream.partition("/")[2],
            name=self.name,
            kind="session" if self.session else created.kind,
            principal=self.principal,
            retry_of=retry_of,
            fork_of=fork_of or msgspec.UNSET,
            schedule=created.schedule or msgspec.UNSET,
            execution_version=created.execution_version,
            planner_version=created.planner_version,
            tool_registry_version=created.tool_registry_version,
            created_at=self.created_at,
            ended_at=self.ended_at,
            events=self.events,
            input_preview=shown(created.input, created.input_blob),
            result_preview=shown(end.result, end.result_blob) if isinstance(end, k.JobCompleted) else "",
            error=end.error if isinstance(end, k.JobFailed) else None,
            cancelled_by=end.by if isinstance(end, k.JobCancelled) else "",
            segments=() if self.session else self._timeline.segments(stopped=stopped),  # a session has calls alone
            steps=tuple(self.tell()),
            drifts=tuple(self.drifts),
            recoveries=tuple(self.recoveries),
            stuck=tuple(
                waited
                for step, track in self.steps.items()
                if not self._is_step(step, track)
                for waited in track.waits.values()
                if waited.stuck
            ),
        )

    # --- reading

    def _step(self, step: str, at: int) -> StepFacts:
        track = self.steps.get(step)
        if track is None:
            track = self.steps[step] = StepFacts(at, self._taken_from)
        elif at > track.until:
            track.until = at
        return track

    def _read(self, payload: k.Payload, at: int) -> None:
        read = self._readers.get(type(payload))
        if read is not None:
            read(self, payload, at)
        elif not isinstance(payload, _ABOUT) and (step := getattr(payload, "step", "")):
            self._step(step, at)

    def _start(self, payload: k.ToolInvocationStarted | k.CommandStarted, at: int) -> None:
        attempt = AttemptFacts(payload.attempt, at)
        if isinstance(payload, k.CommandStarted) and payload.asked:
            attempt = attempt._replace(model=payload.name, passed=tuple(payload.passed.values()))
        self._step(payload.step, at).tries += (attempt,)

    def _open(self, payload: k.SessionOpened, _at: int) -> None:
        self.session = payload

    def _relay(self, payload: k.RequestRelayed, at: int) -> None:
        self._step(payload.step, at).relayed = payload

    def _continue(self, payload: k.CallContinued, at: int) -> None:
        again = Continued(session=payload.session, asked_in=payload.asked_in, at=at)
        self._step(payload.step, at).continued.setdefault(payload.session, again)

    def _ungoverned(self, payload: k.CallUngoverned, at: int) -> None:
        self._step(payload.step, at).ungoverned += (f"{payload.tool_name} {payload.call_id}",)

    def _logged(self, payload: k.CallLogged, at: int) -> None:
        self._step(payload.step, at).logged += (payload,)

    def _drift(self, payload: Drifted, at: int) -> None:
        self.drifts.append(drift_of(payload, at))

    def _recover(self, payload: k.RecoveryStarted, at: int) -> None:
        self.recoveries.append(
            Recovery(at=at, owner=payload.owner, previous_owner=payload.previous_owner, replayed_steps=None)
        )

    def _recovered(self, payload: k.RecoveryCompleted, _at: int) -> None:
        if self.recoveries:
            done = msgspec.structs.replace(self.recoveries[-1], replayed_steps=payload.replayed_steps)
            self.recoveries[-1] = done

    def _end(self, _payload: k.Payload, at: int) -> None:
        self.ended_at = at

    def _finish(self, payload: k.ToolInvocationFinished | k.CommandCommitted, at: int) -> None:
        step = self._step(payload.step, at)
        if step.tries:
            announced = step.tries[-1]
            step.tries = (*step.tries[:-1], announced._replace(until=at, finished=payload))

    def _wait(self, payload: k.JobWaiting, at: int) -> None:
        waited = Waited(
            type=payload.wait_type,
            key=payload.correlation_key,
            since=at,
            due_at=payload.due_at,
            reason=payload.reason,
        )
        self._step(payload.step, at).waits[payload.correlation_key] = waited

    def _end_wait(self, payload: k.WaitCompleted | k.TimerFired, at: int) -> None:
        waits = self._step(payload.step, at).waits
        open_wait = waits.get(payload.correlation_key)
        if open_wait is not None:
            waits[payload.correlation_key] = open_wait.over(payload, at)

    _readers: ClassVar[dict[type[k.Payload], Callable[[Any, Any, int], None]]] = {
        k.ToolInvocationStarted: _start,
        k.ToolInvocationFinished: _finish,
        k.CommandStarted: _start,
        k.CommandCommitted: _finish,
        k.SessionOpened: _open,
        k.RequestRelayed: _relay,
        k.CallContinued: _continue,
        k.CallUngoverned: _ungoverned,
        k.CallLogged: _logged,
        k.JobWaiting: _wait,
        k.WaitCompleted: _end_wait,
        k.TimerFired: _end_wait,
        k.VersionMismatchRecorded: _drift,
        k.SchemaDriftRecorded: _drift,
        k.ModelDriftRecorded: _drift,
        k.RecoveryStarted: _recover,
        k.RecoveryCompleted: _recovered,
        k.JobCompleted: _end,
        k.JobFailed: _end,
        k.JobCancelled: _end,
    }

    # --- telling

    def tell(self, preview: Preview = shown) -> Iterator[StepNarrative]:
        """Every step, in the order in which they began."""
        teller = Teller(self.history, self.drifts, preview)
        return (self._told(step, track, teller) for step, track in self.steps.items() if self._is_step(step, track))

    def _told(self, step: str, facts: StepFacts, teller: Teller) -> StepNarrative:
        return teller.tell(step, facts, self._child(step) if step in self.history.children else None)

    def _is_step(self, step: str, facts: StepFacts) -> bool:
        """Return whether something was done there; a worker that could not go on leaves a mark anywhere."""
        history = self.history
        known = step in history.places or step in history.calls or step in history.models
        return known or facts.relayed is not None

    def _child(self, step: str) -> ChildFacts:
        """A child recipe; what is known of all of them is made once for so many events."""
        if self._children[0] != self.events:
            states = [
                (place, state_of(self.history, place, track), track.until)
                for place, track in self.steps.items()
                if self._is_step(place, track)
            ]
            self._children = self.events, children(self.history, states)
        return self._children[1][step]


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """Another worker continued the job."""

    at: int
    owner: str
    previous_owner: str
    replayed_steps: int | None
    """None while it is still replaying."""


class Narrative(msgspec.Struct, frozen=True, kw_only=True):
    """The story of one job, or of one session of calls from outside any job."""

    job: str
    """Its identifier, or the session's."""
    name: str
    """The recipe's or plan's; the program that calls, for a session."""
    kind: str
    """`recipe`, `plan` or `session`."""
    principal: str
    retry_of: str
    """The job whose steps it took over; empty: none."""
    execution_version: str
    planner_version: str
    tool_registry_version: str
    created_at: int
    ended_at: int | None
    events: int
    input_preview: str
    result_preview: str
    error: k.ErrorInfo | None
    cancelled_by: str
    segments: tuple[Segment, ...]
    steps: tuple[StepNarrative, ...]
    drifts: tuple[Drift, ...]
    recoveries: tuple[Recovery, ...]
    stuck: tuple[Waited, ...] = ()
    """When the code at hand could not go on, at no step in particular."""
    fork_of: str | msgspec.UnsetType = msgspec.UNSET
    """The job that recorded what it shares as a fork; absent: it is none."""
    schedule: k.ScheduleOrigin | msgspec.UnsetType = msgspec.UNSET
    """The schedule that started it, and for which time; absent: none did."""
