"""Places of steps in a job's own events, found without reading all of them.

The root branch of a run does one effect after the other, and stands still while a gather runs (jobs/branch.py). So the
first numbers of places grow with the events, and a search by halves finds one. Anything else is looked for in order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from remit.journal import kinds as k
from remit.journal.journal import PAGE

if TYPE_CHECKING:
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
)
"""Events of the effects themselves; others name a step later as well."""


class Places:
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
