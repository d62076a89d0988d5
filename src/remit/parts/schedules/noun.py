"""The noun `schedules` of the service: what starts by the clock, when, and the outcome of each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import AppendConflictError, NotFoundError, StateError, UsageError
from remit.journal.event import HeadQuery
from remit.journal.kinds import decode
from remit.journal.scan import every_head
from remit.operation import ArgumentPlace, Body, By, operation
from remit.parts.schedules.changes import Declared, ScheduleChanges, require_free
from remit.parts.schedules.kinds import Occurrence, ScheduleFired, ScheduleRunAsked, ScheduleSkipped, ScheduleWaited
from remit.parts.schedules.schedule import Schedule
from remit.parts.schedules.state import DAY_KIND, ScheduleState, day_of, read_state, stream_of
from remit.service.admission import NO_ROOM

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.jobs.program import Programs
    from remit.service.jobs import Jobs
    from remit.service.parts import Parts

_ONE: Final = "/v1/schedules/{schedule}"
_SHOWN: Final = 20
_MOST: Final = 1_000
_FOUND: Final = (Code.SCHEDULE_NOT_FOUND,)
_MADE: Final = (Code.SCHEDULE_INVALID, Code.SCHEDULE_EXISTS, Code.UNKNOWN_RECIPE)
_EXAMPLE: Final = {"name": "nightly", "recipe": "agent", "every": "1d", "input": {"task": "Sort the mail."}}


class OccurrenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a time."""

    at: int
    """The time, in microseconds since the Unix epoch, as all here."""
    what: Literal["fired", "skipped", "waited"]
    job: str = ""
    why: str = ""
    """Reason why no job started, or waits: `missed`, `overlap`, `refused`, or the code of that."""
    reason: str = ""
    missed: int = 0
    """The number of times just before it that were noticed too late; 999: that many or more."""
    recorded_at: int = 0


class ScheduleView(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, and where it stands."""

    schedule: str
    recipe: str
    when: str
    """The expression or interval, in words."""
    zone: str
    state: Literal["on", "waits", "paused", "removed"]
    """`waits`: a time has come, and its job cannot start yet."""
    reason: str
    """Reason why it pauses or waits."""
    by: str
    """Person who made it what it is, or paused it."""
    next: int | None
    """The time that comes next."""
    due_at: int | None
    """When that starts, with jitter; null: it does not."""
    revision: int
    source: Literal["person", "settings", "recipe"]
    place: str
    failures: int
    """The number of its jobs that failed in a row, when it was last looked at."""
    spec: Schedule
    last: tuple[OccurrenceRow, ...]
    """The outcomes of its newest times, newest first."""


class ScheduleRun(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs for times of the past, or one for now."""

    jobs: tuple[str, ...]
    """Those that were started."""
    there: int
    """The number of times that have their job already."""


async def may_schedule(_schedules: Schedules, access: Access, _path: Mapping[str, Any]) -> None:
    """Raise Problem unless a token may start any job: a schedule does, under its principal's name."""
    access.require_all_tools("the schedule")


class Schedules:
    """The schedules of one journal."""

    def __init__(self, parts: Parts, jobs: Jobs, principal: str) -> None:
        self._journal = parts.journal
        self._parts = parts
        self._jobs = jobs
        self._principal = principal
        self.changes = ScheduleChanges(parts.journal, principal)

    # --- queries

    @operation("schedules.list", "GET /v1/schedules", "read", "List the schedules.")
    async def rows(self) -> list[ScheduleView]:
        """List the schedules by name, each with the outcome of its newest time."""
        heads = [head for head in await self.changes.heads() if head.state != "removed"]
        return [await self._view(head.title, await read_state(self._journal, head), 1) for head in heads]

    @operation("schedules.view", f"GET {_ONE}", "read", "Show a schedule.", codes=_FOUND)
    async def view(self, schedule: str) -> ScheduleView:
        """Show a schedule, and the outcomes of its newest times."""
        return await self._view(schedule, await self.changes.state(schedule), _SHOWN)

    @operation("schedules.next", f"GET {_ONE}/next", "read", "Say when a schedule comes.", codes=_FOUND)
    async def next(
        self, schedule: str, *, since: int = 0, count: Annotated[int, msgspec.Meta(ge=1, le=_MOST)] = 10
    ) -> list[int]:
        """Say which times come, from `since` (or now) on, in microseconds since the Unix epoch."""
        state = await self.changes.state(schedule)
        times, moments = _spec(state).times, list[int]()
        at = times.after((since or self._journal.clock.now()) - 1)
        while at is not None and len(moments) < count:
            moments.append(at)
            at = times.after(at)
        return moments

    # --- commands

    @operation(
        "schedules.add",
        "POST /v1/schedules",
        "call",
        "Add a schedule.",
        codes=_MADE,
        check=may_schedule,
        example=_EXAMPLE,
        status=201,
    )
    async def add(self, schedule: Annotated[Schedule, ArgumentPlace.BODY], *, by: By = "") -> ScheduleView:
        """Add a schedule of the person who asks; the same one again changes nothing."""
        checked = await self._checked(schedule, by)
        try:
            state = await self.changes.state(schedule.name)
        except NotFoundError:
            pass
        else:
            if _spec(state) != checked:
                remedy = f"Change it: remit schedule add {schedule.name} … --replace."
                raise StateError(
                    f"another schedule is called {schedule.name}", code=Code.SCHEDULE_EXISTS, remedy=remedy
                )
        return await self._set(checked, by)

    @operation(
        "schedules.replace",
        f"POST {_ONE}",
        "call",
        "Change a schedule.",
        codes=(*_MADE, *_FOUND),
        check=may_schedule,
        example=_EXAMPLE,
    )
    async def replace(
        self, schedule: str, spec: Annotated[Schedule, ArgumentPlace.BODY], *, by: By = ""
    ) -> ScheduleView:
        """Let a schedule become another of the same name; its times and pauses go on."""
        if spec.name != schedule:
            raise UsageError(f"the schedule is called {schedule}", code=Code.SCHEDULE_INVALID, remedy="Keep its name.")
        require_free(await self.changes.state(schedule), schedule)
        return await self._set(await self._checked(spec, by), by)

    @operation(
        "schedules.pause",
        f"POST {_ONE}/pause",
        "decide",
        "Pause a schedule.",
        body=Body("SchedulePauseBody", "Why a schedule is to pause.", optional=True),
        codes=_FOUND,
        example={"reason": "the books are closed"},
    )
    async def pause(self, schedule: str, *, reason: str = "", by: By = "") -> ScheduleView:
        """Let nothing start by a schedule until someone resumes it; its jobs go on."""
        await self.changes.pause(schedule, by=by, reason=reason)
        return await self.view(schedule)

    @operation("schedules.resume", f"POST {_ONE}/resume", "decide", "Resume a schedule.", codes=_FOUND)
    async def resume(self, schedule: str, *, by: By = "") -> ScheduleView:
        """Let a schedule go on from now; the times of its pause are passed over."""
        await self.changes.resume(schedule, by=by)
        return await self.view(schedule)

    @operation(
        "schedules.remove",
        f"DELETE {_ONE}",
        "decide",
        "Remove a schedule.",
        status=204,
        codes=(*_FOUND, Code.SCHEDULE_EXISTS),
    )
    async def remove(self, schedule: str, *, by: By = "") -> None:
        """Let nothing start by a schedule any more; its record and its jobs stay."""
        await self.changes.remove(schedule, by=by)

    @operation(
        "schedules.run",
        f"POST {_ONE}/run",
        "call",
        "Start a schedule's jobs for times of the past, or one for now.",
        body=Body("ScheduleRunBody", "Which times; without any, one job for now.", optional=True),
        codes=(*_FOUND, Code.SCHEDULE_INVALID, *NO_ROOM),
        check=may_schedule,
        example={},
    )
    async def run(
        self, schedule: str, *, since: int | None = None, until: int | None = None, by: By = ""
    ) -> ScheduleRun:
        """Start jobs for the times from `since` on, before `until` or now, in microseconds; without both, one for now.

        A time that has its job already gets no second one, so that a request that was broken off can be sent again.
        """
        now = self._journal.clock.now()
        due = await self._asked(schedule, now if since is None else since, now if until is None else until)
        name = by or self._principal
        at = due.times or (now,)
        log = await self.changes.ask_run(
            schedule, ScheduleRunAsked(by=name, start=at[0], end=at[-1] + 1, times=len(at))
        )
        jobs, there = list[str](), due.there
        for time in at if since is None or due.times else ():
            try:
                jobs.append(await self._jobs.start_named(due.spec.recipe, due.spec.input, log.options(time, name)))
            except AppendConflictError:
                there += 1
        return ScheduleRun(jobs=tuple(jobs), there=there)

    # --- parts of these

    async def _asked(self, name: str, since: int, until: int) -> _Asked:
        """Say for which times of the past jobs are wanted. Raise UsageError for too many."""
        spec = _spec(await self.changes.state(name))
        until, times, moments = min(until, self._journal.clock.now()), spec.times, list[int]()
        at = times.after(since - 1)
        while at is not None and at < until:
            moments.append(at)
            if len(moments) > _MOST:
                reason = f"{name} has more than {_MOST} times there"
                raise UsageError(reason, code=Code.SCHEDULE_INVALID, remedy="Give a shorter time, several times.")
            at = times.after(at)
        have = await self._fired(name, moments) if moments else set()
        return _Asked(spec, tuple(each for each in moments if each not in have), len(have.intersection(moments)))

    async def _fired(self, name: str, times: list[int]) -> set[int]:
        """Return for which of these times a job started, under whatever revision."""
        first, last = day_of(times[0]), day_of(times[-1])
        days = HeadQuery(kind=DAY_KIND, prefix=f"{stream_of(name)}/")
        have = set[int]()
        async for head in every_head(self._journal, days):
            if first <= head.stream.rpartition("/")[2] <= last:
                occurrences = (decode(event.kind, event.data) for event in await self._journal.read(head.stream))
                have |= {occurrence.at for occurrence in occurrences if isinstance(occurrence, ScheduleFired)}
        return have

    async def _checked(self, schedule: Schedule, by: str) -> Schedule:
        """Return a schedule of the person who asks. Raise UsageError, or NotFoundError (UNKNOWN_RECIPE)."""
        owned = replace(schedule, principal=by or self._principal)
        owned.check()
        programs: Programs = self._parts.programs
        _ = programs.recipes.get(owned.recipe).bind(owned.input)
        return owned

    async def _set(self, schedule: Schedule, by: str) -> ScheduleView:
        await self.changes.set(Declared(schedule, "person", ""), by=by)
        return await self.view(schedule.name)

    async def _view(self, name: str, state: ScheduleState, most: int) -> ScheduleView:
        record, spec = state.record, _spec(state)
        change, pause, wait = record.change, record.pause, state.wait
        reason = pause.reason if pause is not None else (wait.reason or wait.code) if wait is not None else ""
        moves = state.word in {"on", "waits"} and state.next is not None
        return ScheduleView(
            schedule=name,
            recipe=spec.recipe,
            when=spec.words,
            zone=spec.zone,
            state=state.word,
            reason=reason,
            by=pause.by if pause is not None else change.by if change is not None else "",
            next=state.next if moves else None,
            due_at=spec.times.due(state.next) if moves and state.next is not None else None,
            revision=change.revision if change is not None else 0,
            source=change.source if change is not None else "person",
            place=change.place if change is not None else "",
            failures=state.failures,
            spec=spec,
            last=await self._last(state, most),
        )

    async def _last(self, state: ScheduleState, most: int) -> tuple[OccurrenceRow, ...]:
        """Return the newest occurrences, newest first: of the day that is open, and of the one before if it has few."""
        rows, heads = list[OccurrenceRow](), [state.day] if state.day is not None else []
        if state.day is not None and state.day.seq < most:
            days = HeadQuery(kind=DAY_KIND, prefix=f"{state.record.stream}/", before=state.day.stream, limit=1)
            heads += await self._journal.heads(days)
        for head in heads:
            after = max(0, head.seq - most + len(rows))
            events = await self._journal.left(head.stream, after)
            rows += [row for event in reversed(events) if (row := _row(decode(event.kind, event.data), event.at))]
        return tuple(rows[:most])


class _Asked(NamedTuple):
    spec: Schedule
    times: tuple[int, ...]
    there: int


def _spec(state: ScheduleState) -> Schedule:
    if state.record.spec is None:
        raise NotFoundError("it has no schedule", code=Code.SCHEDULE_NOT_FOUND, remedy="Run `remit verify`.")
    return state.record.spec


def _row(occurrence: object, at: int) -> OccurrenceRow | None:
    match occurrence:
        case ScheduleFired(at=time, job=job, missed=missed):
            return OccurrenceRow(at=time, what="fired", job=job, missed=missed, recorded_at=at)
        case ScheduleSkipped(at=time, why=kind, code=code, reason=reason, missed=missed):
            cause = code or kind
            return OccurrenceRow(at=time, what="skipped", why=cause, reason=reason, missed=missed, recorded_at=at)
        case ScheduleWaited(at=time, code=code, reason=reason, missed=missed):
            cause = code or "overlap"
            return OccurrenceRow(at=time, what="waited", why=cause, reason=reason, missed=missed, recorded_at=at)
        case Occurrence() | _:
            return None
