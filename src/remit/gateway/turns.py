"""Whose turn it is at a limit of calls: pure decisions about one state, which all processes share (turnstiles.py).

- A rate is a token bucket as one number (GCRA, ITU-T I.371): the time at which the bucket will be full again. It never
  lies further ahead than a full bucket takes, so that a machine whose clock is ahead shuts no one else out for longer.
- A call under way holds a place until it leaves, or until it must have ended: a process that died keeps none.
- After so many failures to reach the tool in a row the circuit is open. Once its time is over one call probes: if it
  fails too, the time begins again. What began before the circuit opened, and ends after, says nothing of it.
- While calls wait, the share with the fewest places comes first, then the one whose turn was longest ago. A process
  tells in the state for which shares it waits, so that this holds over all of them.
- A job does not wait in its process. It gets a place in line, as a time: the state holds the last of them by rank, not
  who has it. So a place is only when to look again; whether a call may begin, the look decides. Who was sent to a far
  place looks now and then before, for those ahead may never come.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.clock import DAY, SECOND
from remit.codes import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remit.settings.sections.calls import CallLimit

WAIT: Final = SECOND
"""Microseconds for which it counts that a process waits, unless it says so again."""
_REMEMBERED: Final = 600 * SECOND
"""Microseconds for which it is remembered whose turn it was, and a full bucket, whose clock may be another's."""
_MOST: Final = 256
"""Shares whose turns are remembered."""
_FAR: Final = 3_600 * SECOND
"""Microseconds after which a job in line looks whether its turn came early."""
_TRIES: Final = 100
"""Jobs in line that look in the time that a circuit stays open; so many find it open again if the tool is not back."""

End = Literal["answered", "unreachable", "unknown", "unused"]
"""The end of a call: the tool was reached; it was not; the call was cancelled; or it was never made."""


class TurnLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is by in the line of those that look again later."""

    priority: int = 0
    place: int = 0
    """The time at which its turn was to come; 0: it was not sent to the line yet."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A call that wants its turn."""

    id: str
    share: str
    """The principal, or whatever else takes turns, that it counts for."""
    patience: int
    """When it gives up waiting."""
    lasts: int
    """Microseconds after which it has certainly ended, once it began."""
    line: TurnLine | None = None
    """Where it stands in line, if it looks again later; None: it is refused."""


class Obstacle(msgspec.Struct, frozen=True):
    """Why a call cannot begin now."""

    code: Code
    at: int
    """When to look again."""
    place: int = 0
    """When the turn of a job comes, if those ahead of it come."""


class TurnPlace(msgspec.Struct, array_like=True):
    """A call under way."""

    share: str
    until: int
    since: int = 0


class TurnState(msgspec.Struct, omit_defaults=True):
    """The state of one limit. Times in microseconds."""

    full_at: int = 0
    places: dict[str, TurnPlace] = {}
    """By call."""
    waits: dict[str, dict[str, int]] = {}
    """By process and share, until when it counts."""
    turns: dict[str, int] = {}
    """By share, when the last call of it began."""
    failures: int = 0
    failed_at: int = 0
    """When the last of them was."""
    opens_at: int = 0
    """When the next call is tried; 0: the circuit is closed."""
    probe: str = ""
    probe_until: int = 0
    lines: dict[int, int] = {}
    """By rank, the last place in line of jobs: twice their priority, and one more for those that had their turn."""
    lasted: int = 0
    """Microseconds that calls lasted lately."""

    def forget(self, now: int) -> None:
        """Drop what has lapsed; what is at rest then equals a state that no one used."""
        if self.full_at <= now - _REMEMBERED:
            self.full_at = 0
        if max(self.failed_at, self.opens_at) <= now - DAY:
            self.failures = self.failed_at = self.opens_at = self.probe_until = 0
            self.probe = ""
        self.places = {call: place for call, place in self.places.items() if place.until > now}
        waits = {
            process: {share: until for share, until in shares.items() if now < until <= now + WAIT}
            for process, shares in self.waits.items()
        }
        self.waits = {process: shares for process, shares in waits.items() if shares}
        recent = sorted((at, share) for share, at in self.turns.items() if at > now - _REMEMBERED)
        self.turns = {share: at for at, share in recent[-_MOST:]}
        self.lines = {rank: place for rank, place in self.lines.items() if place > now}
        if not (self.turns or self.places or self.lines):
            self.lasted = 0


class Round(msgspec.Struct, frozen=True):
    """Calls that waited in one process, as a look left them."""

    begun: list[Wish]
    refused: list[tuple[Wish, Obstacle]]
    at: int
    """When those that still wait should look again; 0: none waits."""


def obstacle(limit: CallLimit, state: TurnState, now: int) -> Obstacle | None:
    """Return what stands in the way of any call; None: one may begin."""
    if state.opens_at > now:
        return Obstacle(Code.CIRCUIT_OPEN, state.opens_at)
    if state.opens_at and state.probe_until > now:
        return Obstacle(Code.CIRCUIT_OPEN, min(state.probe_until, now + WAIT))
    if limit.concurrency is not None and len(state.places) >= limit.concurrency:
        return Obstacle(Code.CONCURRENCY_LIMITED, min(place.until for place in state.places.values()))
    period = limit.period
    if period:
        state.full_at = min(state.full_at, now + limit.room * period)
        begins = state.full_at - (limit.room - 1) * period
        if begins > now:
            return Obstacle(Code.RATE_LIMITED, begins)
    return None


def fill(limit: CallLimit, state: TurnState, now: int) -> dict[str, float]:
    """Return how full each bound of a limit is, in percent; that of an open circuit is 100."""
    state.forget(now)
    percents = {}
    if limit.concurrency is not None:
        percents["concurrency"] = 100 * len(state.places) / limit.concurrency
    if limit.period:
        calls = max(0.0, (state.full_at - now) / limit.period)
        percents["rate"] = 100 * min(1.0, calls / limit.room)
    if limit.breaker is not None:
        percents["breaker"] = 100.0 if state.opens_at > now else 100 * min(1.0, state.failures / limit.breaker)
    return percents


def take_turns(limit: CallLimit, state: TurnState, wishes: Sequence[Wish], now: int, process: str) -> Round:
    """Let calls begin as there is room, in fair order, and write down who goes on waiting."""
    waiting, begun = list(wishes), list[Wish]()
    hindrance = None
    while waiting and (hindrance := obstacle(limit, state, now)) is None:
        order = _order(state)
        wish = min(waiting, key=lambda each: order(each.share))
        if any(order(share) < order(wish.share) for share in _elsewhere(state, process)):
            code = Code.RATE_LIMITED if limit.concurrency is None else Code.CONCURRENCY_LIMITED
            hindrance = Obstacle(code, now + WAIT)
            break
        waiting.remove(wish)
        begun.append(wish)
        _begin(limit, state, wish, now)
    state.waits.pop(process, None)
    if hindrance is None:
        return Round(begun, [], 0)
    given_up = _given_up(limit, waiting, hindrance, now)
    staying = [wish for wish in waiting if wish.id not in given_up]
    refused = [(wish, _sent(limit, state, wish, hindrance, now)) for wish in waiting if wish.id in given_up]
    if not staying:
        return Round(begun, refused, 0)
    state.waits[process] = {wish.share: now + WAIT for wish in staying}
    return Round(begun, refused, min(hindrance.at, *(wish.patience for wish in staying)))


def _given_up(limit: CallLimit, waiting: Sequence[Wish], hindrance: Obstacle, now: int) -> set[str]:
    """Return the calls that wait no longer: in vain, or as the newest of the share that has most of them."""
    if hindrance.code is Code.CIRCUIT_OPEN:
        return {wish.id for wish in waiting}
    sure = hindrance.at if hindrance.code is Code.RATE_LIMITED else now
    vain = {wish.id for wish in waiting if wish.patience <= now or wish.patience < sure}
    ranks, ranked = Counter[str](), list[tuple[int, str]]()
    for wish in waiting:
        if wish.id not in vain:
            ranked.append((ranks[wish.share], wish.id))
            ranks[wish.share] += 1
    ranked.sort(key=lambda each: each[0])
    return vain | {call for _, call in ranked[limit.queue :]}


def _sent(limit: CallLimit, state: TurnState, wish: Wish, hindrance: Obstacle, now: int) -> Obstacle:
    """Send a job to its place in line, behind those of its rank and above; who is not there yet keeps the place."""
    line, code = wish.line, hindrance.code
    if line is None:
        return hindrance
    apart = max(limit.period, 1)
    if limit.concurrency is not None:
        apart = max(apart, min(state.lasted or SECOND, _FAR) // limit.concurrency)
    if code is Code.CIRCUIT_OPEN:
        apart = max(apart, limit.breaker_seconds * SECOND // _TRIES)
    first = now + apart if code is Code.CONCURRENCY_LIMITED else hindrance.at
    place = max(first, line.place)
    if line.place <= now:
        rank = 2 * line.priority + (line.place > 0)
        ahead = [last for other, last in state.lines.items() if other >= rank]
        place = state.lines[rank] = max([first, *(last + apart for last in ahead)])
    early = first + _FAR // 2 + place % (_FAR // 2)  # spread, as places are
    return Obstacle(code, place if place <= first + _FAR else early, place)


def leave(limit: CallLimit, state: TurnState, call: str, end: End, now: int) -> None:
    """Give the place of a call back, and count how it ended."""
    place = state.places.pop(call, None)
    if place is not None and end == "answered":
        state.lasted = (3 * (state.lasted or now - place.since) + now - place.since) // 4
    if end == "unused" and limit.period:
        state.full_at -= limit.period
    probed = state.probe == call
    if probed:
        state.probe, state.probe_until = "", 0
    if limit.breaker is None or end in {"unused", "unknown"} or (state.opens_at and not probed):
        return
    state.failures = 0 if end == "answered" else state.failures + 1
    state.failed_at = now if state.failures else 0
    state.opens_at = now + limit.breaker_seconds * SECOND if state.failures >= limit.breaker else 0


def _begin(limit: CallLimit, state: TurnState, wish: Wish, now: int) -> None:
    if state.full_at <= now and not state.places:
        state.lines.clear()  # it was at rest: those who were sent there are gone
    if limit.period:
        state.full_at = max(state.full_at, now) + limit.period
    if limit.concurrency is not None:
        state.places[wish.id] = TurnPlace(wish.share, now + wish.lasts, now)
    if state.opens_at:
        state.probe, state.probe_until = wish.id, now + wish.lasts
    if limit.period or limit.concurrency is not None:
        state.turns[wish.share] = max(now, 1 + max(state.turns.values(), default=0))


def _order(state: TurnState) -> Callable[[str], tuple[int, int]]:
    """Whose turn comes first: by places, then by the time of the last turn."""
    places = Counter(place.share for place in state.places.values())
    return lambda share: (places[share], state.turns.get(share, 0))


def _elsewhere(state: TurnState, process: str) -> set[str]:
    return {share for other, shares in state.waits.items() if other != process for share in shares}
