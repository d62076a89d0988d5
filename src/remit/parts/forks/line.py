"""The line of a job: itself, and if it is a fork the job that it shares events with, and so on. Where a fork begins.

Places of steps in a job's own events, found without reading all of them.

The root branch of a run does one effect after the other, and stands still while a gather runs (jobs/branch.py). So the
first numbers of places grow with the events, and a search by halves finds one. Anything else is looked for in order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, NamedTuple

from remit.codes import Code
from remit.errors import ChainBrokenError, NotFoundError
from remit.jobs.state import stream_of
from remit.journal import kinds as k
from remit.journal.effects import recorded
from remit.journal.journal import PAGE
from remit.journal.lineage import OWN

if TYPE_CHECKING:
    from collections.abc import Collection

    from remit.journal.event import Event
    from remit.journal.journal import Journal


_WINDOW: Final = 32
_BEGIN: Final = (
    k.ToolInvocationStarted,
    k.ToolInvocationFinished,
    k.ConfirmationRequested,
    k.GateRefused,
    k.CommandStarted,
    k.CommandCommitted,
    k.TimeRecorded,
    k.RandomRecorded,
    k.UuidRecorded,
    k.JobWaiting,
    k.WaitCompleted,
    k.TimerFired,
    k.ChildStarted,
    k.ChildEnded,
    k.JobLabeled,
)
"""Events of the effects themselves; others name a step later as well."""


class StepPlaces:
    """The steps that stand between two events of a stream: after `first`, up to `last`."""

    def __init__(self, journal: Journal, stream: str, first: int, last: int) -> None:
        self.journal = journal
        self.stream = stream
        self.first = first
        self.last = last

    async def before(self, step: str) -> int | None:
        """Return the event before the first one of a step, or of what it gathers; None: it has none."""
        number = _number(step)
        begin = await self._first(number) if number is not None else self.first
        later: Event | None = None
        async for event in self.events(begin):
            if later is None and number is not None and (_number(_step(event)) or 0) > number:
                return None
            if _is_of(event, step):
                later = event
                break
        if later is None:
            return None
        return await self._stepped_back(later.seq, step)

    async def after(self, step: str) -> int:
        """Return the last event of a step, or of what it gathers."""
        number = _number(step) if step.isdigit() else None
        if number is not None:
            later = await self._first(number + 1)
            following = [event async for event in self.events(later)][:1] if later < self.last else []
            return await self._stepped_back(later + 1, _step(following[0])) if following else later
        last = 0
        async for event in self.events(self.first):
            if _is_of(event, step):
                last = event.seq
        return last

    async def of(self, step: str, before: int) -> list[Event]:
        """Return the events of a step itself, after the one before it."""
        events: list[Event] = []
        async for event in self.events(before):
            payload = k.decode(event.kind, event.data)
            place: str = getattr(payload, "step", "")
            if place == step:
                events.append(event)
            elif step.isdigit() and events and _number(_step(event)) is not None:
                break
        return events

    async def start(self) -> int:
        """Return the event before the first one of any step; the last one, if there is no step."""
        async for event in self.events(self.first):
            if _step(event):
                return await self._stepped_back(event.seq, _step(event))
        return self.last

    async def events(self, after: int) -> AsyncIterator[Event]:
        """The events after one, in order."""
        size = _WINDOW
        while after < self.last and (page := await self.journal.page(self.stream, after, size)):
            for event in page:
                if event.seq <= self.last:
                    yield event
            after, size = page[-1].seq, PAGE

    async def _first(self, number: int) -> int:
        """Return the event before the first one whose place begins with `number` or more; the last one, if none does.

        Where the next look falls is guessed by how far the numbers have come, and every other time by halves.
        """
        low, high, before, beyond = self.first, self.last, 0, 0
        if (newest := await self._number_from(max(self.first, self.last - _WINDOW), self.last)) is not None:
            low, high, before, beyond = (
                (self.first, newest[0], 0, newest[1]) if newest[1] >= number else (newest[0], self.last, newest[1], 0)
            )
        guess = True
        while high - low > _WINDOW:
            middle = (low + high) // 2
            if guess and beyond > before:
                middle = low + (high - low) * (number - before) // (beyond - before + 1) - _WINDOW // 2
            place = await self._number_from(min(max(middle, low), high - 1), high)
            guess = not guess
            if place is None:
                high = min(max(middle, low), high - 1)
            elif place[1] >= number:
                high, beyond = place
            else:
                low, before = place
        async for event in self.events(low):
            if (_number(_step(event)) or 0) >= number:
                return event.seq - 1
        return self.last

    async def _number_from(self, after: int, until: int) -> tuple[int, int] | None:
        """Return the first event from there on, before `until`, that has a number, and it; None: none has."""
        while after < until and (page := await self.journal.page(self.stream, after, _WINDOW)):
            for event in page:
                if event.seq < until and (number := _number(_step(event))) is not None:
                    return event.seq, number
            after = page[-1].seq
        return None

    async def _stepped_back(self, seq: int, step: str) -> int:
        """Return the event before all those that prepare a step directly before its first one."""
        begin = max(seq - 1 - _WINDOW, self.first)
        before = await self.journal.page(self.stream, begin, seq - 1 - begin) if begin < seq - 1 else []
        for event in reversed(before):
            payload = k.decode(event.kind, event.data)
            if getattr(payload, "step", "") != step:
                break
            seq = event.seq
        return seq - 1


def _step(event: Event) -> str:
    payload = k.decode(event.kind, event.data)
    step: str = getattr(payload, "step", "") if isinstance(payload, _BEGIN) else ""
    return "" if step.startswith("undo:") else step


def _number(step: str) -> int | None:
    first = step.partition(".")[0]
    return int(first) if first.isdigit() else None


def _is_of(event: Event, step: str) -> bool:
    place = _step(event)
    return place == step or place.startswith(f"{step}.")


_TELLING: Final = frozenset({k.ToolInvocationStarted.KIND, k.ToolInvocationFinished.KIND, k.StepCompensated.KIND})


class LineSegment(NamedTuple):
    """The own events of one job of the line that count."""

    job: str
    forked: k.JobForked | None
    """Record of where it begins, if it is a fork."""
    places: StepPlaces
    changes: tuple[k.Payload, ...]
    """The results and arguments that it gives in place of those that it shares."""


class ForkCut(NamedTuple):
    """The place at which a fork of the line begins."""

    line: tuple[LineSegment, ...]
    """Segments from the job that recorded the last shared event on."""
    seq: int
    """Number of that event."""
    changes: tuple[k.Payload, ...]
    """Changes of forks of it that are in between, and hold on."""
    repeated: tuple[str, ...]
    """Steps that run again, although their calls took effect, or may have."""


async def line_of(journal: Journal, job: str, last: int) -> tuple[LineSegment, ...]:
    """Return the line of a job as of its event `last`. Raises ChainBrokenError if it goes in a circle."""
    line: list[LineSegment] = []
    while True:
        if any(segment.job == job for segment in line):
            raise ChainBrokenError(f"{job} shares events with itself", remedy=f"Run `remit verify {job}`.")
        stream = stream_of(job)
        own = await journal.page(stream, 0, OWN)
        payload = k.decode(own[1].kind, own[1].data) if len(own) == OWN else None
        forked = payload if isinstance(payload, k.JobForked) and payload.shared else None
        if forked is None:
            line.append(LineSegment(job, None, StepPlaces(journal, stream, 0, last), ()))
            return tuple(line)
        changed = await journal.page(stream, OWN, forked.changes) if forked.changes else []
        changes = tuple(change for event in changed if (change := k.decode(event.kind, event.data)) is not None)
        line.append(LineSegment(job, forked, StepPlaces(journal, stream, OWN + forked.changes, last), changes))
        job, last = forked.job, forked.seq


async def cut(
    line: tuple[LineSegment, ...], at: str, results: Collection[str], args: Collection[str], *, repeat: bool
) -> ForkCut:
    """Find where a fork begins. Raises NotFoundError (STEP_NOT_FOUND) if there is no such step."""
    later: list[LineSegment] = []
    for index, segment in enumerate(line):
        seq = await _cut(segment.places, at, results, args, is_last=index == len(line) - 1)
        if seq is not None:
            changes = await _held([change for entry in reversed(later) for change in entry.changes], line[index:], seq)
            repeated = () if repeat else await _repeated([*later, segment], seq)
            return ForkCut(line[index:], seq, changes, repeated)
        later.append(segment)
    missing, job = at or next(iter((*args, *results)), ""), line[0].job
    remedy = f"`remit show {job}` lists its steps."
    raise NotFoundError(f"{job} has no step {missing!r:.80}", code=Code.STEP_NOT_FOUND, remedy=remedy)


async def _cut(
    places: StepPlaces, at: str, results: Collection[str], args: Collection[str], *, is_last: bool
) -> int | None:
    """The last event that is shared; None if the step that says so is not among these."""
    if at and at not in results:
        return await places.before(at)
    if at or (results and not args):
        begun = [(step, await places.before(step)) for step in ((at,) if at else results)]
        if any(before is None for _, before in begun) and (at or is_last):
            return None
        ends = [await places.after(step) for step, before in begun if before is not None]
        return max(ends) if ends else None
    begun = [(step, await places.before(step)) for step in args]
    starts = [before for _, before in begun if before is not None]
    if args:
        return min(starts) if len(starts) == len(args) else None
    return await places.start() if is_last else None


async def _held(changes: list[k.Payload], line: tuple[LineSegment, ...], seq: int) -> tuple[k.Payload, ...]:
    """Return the changes without results of steps that run again."""
    return tuple(
        [
            change
            for change in changes
            if isinstance(change, k.StepArgsGiven) or await events_of(line, seq, getattr(change, "step", ""))
        ]
    )


async def events_of(line: tuple[LineSegment, ...], seq: int, step: str) -> list[Event]:
    """Return the events of a step that is shared by a fork that begins after `seq` of the line's first job."""
    last = seq
    for segment in line:
        first = segment.places
        places = StepPlaces(first.journal, first.stream, first.first, last)
        before = await places.before(step) if last > first.first else None
        if before is not None:
            return await places.of(step, before)
        last = segment.forked.seq if segment.forked is not None else 0
    return []


async def _repeated(segments: list[LineSegment], seq: int) -> tuple[str, ...]:
    """Steps whose effects stand after an event of the last segment, and in all before it."""
    done: dict[str, str] = {}
    for segment in segments:
        after = seq if segment is segments[-1] else segment.places.first
        async for event in segment.places.events(after):
            # Of a call that only reads neither event has the word, and its end says something only of what was noted.
            if event.kind in _TELLING and (done or b'"side_effect' in event.data or b'"effect"' in event.data):
                _note(k.decode(event.kind, event.data), done)
    return tuple(dict.fromkeys(done.values()))


def _note(payload: k.Payload | None, done: dict[str, str]) -> None:
    match payload:
        case k.ToolInvocationStarted():
            done[payload.invocation_id] = payload.step
        case k.ToolInvocationFinished():
            # It may have been announced before the event after which the fork begins.
            writes = payload.effect or payload.step_outcome == "side_effect_committed" or payload.invocation_id in done
            if writes and recorded(payload).stands:
                done[payload.invocation_id] = payload.step
            else:
                done.pop(payload.invocation_id, None)
        case k.StepCompensated() if payload.outcome != "failed":
            for invocation in [
                candidate for candidate, step in done.items() if step in {payload.step, payload.undo_step}
            ]:
                del done[invocation]
        case _:
            pass
