"""The limits of calls as one process meets them: it lets its own calls in by a state that all processes share.

The state of a limit is one row in the journal's store, replaced on the condition that no other process replaced it
meanwhile (`Folds.keep`). A process decides on all of its waiting calls in one look, so that many calls cost few looks;
of several processes that look at the same moment, one goes on and the others look again. A limit that each value has
for itself has a fixed number of rows, which values share by their digests; a look drops the states in its row that are
at rest. Nothing here decides what was allowed or used: that is recorded in streams (rule 14). A row that is lost, or
cannot be read, counts as one unused.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec

from remit.canonical import sha256
from remit.clock import SECOND
from remit.errors import JournalError
from remit.gateway.turns import End, Obstacle, TurnState, Wish, fill, leave, take_turns
from remit.ids import new_id
from remit.journal.event import JournalFold
from remit.journal.writer import copy_error
from remit.policy.globs import name_matches
from remit.tasks import Tasks, first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.gateway.turns import TurnLine
    from remit.journal.journal import Journal
    from remit.settings.sections.calls import CallLimit

_log: Final = logging.getLogger("remit.gateway")
_SLACK: Final = 60 * SECOND
"""Microseconds that a call may last beyond its deadline, until its outcome is recorded."""
_MOMENT: Final = SECOND // 5
"""Microseconds that a call of a job waits for its turn; then the job is parked."""
_LOOK_S: Final = 0.05, 0.5
"""Seconds between looks while other processes hold the places: first, and at most."""
_MOST: Final = 1_000
"""Turnstiles that are kept while no call is at them; and names."""
_SHARED: Final = 3
"""Hexadecimal digits of their digests by which values share a row: 4,096 rows."""
_DIGITS: Final = 32
"""Hexadecimal digits that tell the values in a row apart."""


class LimitCaller(msgspec.Struct, frozen=True):
    """Facts about a call that limits distinguish."""

    tool: str
    principal: str
    recipe: str
    labels: Mapping[str, str]

    def value(self, of: str) -> str:
        """Return the value of `principal`, `recipe`, `tool` or `label:NAME`; empty if it has none."""
        if of.startswith("label:"):
            return self.labels.get(of.removeprefix("label:"), "")
        return str(getattr(self, of))


_NOBODY: Final = LimitCaller("", "", "", {})


class Turnstile:
    """One limit."""

    def __init__(self, journal: Journal, row: str, key: str, limit: CallLimit, process: str, tasks: Tasks) -> None:
        self.limit = limit
        self._clock = journal.clock
        self._folds = journal.folds
        self._row = row
        self._key = key
        self._process = process
        self._tasks = tasks
        self._waiting: dict[Wish, asyncio.Future[Obstacle | None]] = {}
        self._leaving: list[tuple[str, End, asyncio.Future[None]]] = []
        self._inside: set[str] = set()
        self._news = asyncio.Event()
        self._works = False
        self._failures = 0

    @property
    def idle(self) -> bool:
        """Return whether no call of this process waits or is inside."""
        return not (self._works or self._inside)

    async def enter(self, call: str, share: str, timeout_s: float, line: TurnLine | None = None) -> Obstacle | None:
        """Wait for the turn of a call; return why it may not begin. Raises JournalError.

        A job in `line` waits a moment here, and comes again when it is told to.
        """
        patience = self.limit.wait_seconds * SECOND if line is None else _MOMENT
        lasts = round(timeout_s * SECOND) + _SLACK
        wish = Wish(id=call, share=share, patience=self._clock.now() + patience, lasts=lasts, line=line)
        turn: asyncio.Future[Obstacle | None] = asyncio.get_running_loop().create_future()
        self._waiting[wish] = turn
        self._look()
        try:
            hindrance = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None and turn.result() is None:
                self._give_back(call)
                self._look()
            raise
        finally:
            self._waiting.pop(wish, None)
        return hindrance

    async def leave(self, call: str, end: End) -> None:
        """Give the place of a call back. What the journal makes impossible is logged: the place lapses by itself."""
        self._inside.discard(call)
        limit = self.limit
        tells = limit.breaker is not None and (end == "unreachable" or self._failures > 0)
        if limit.concurrency is None and end != "unused" and not tells:
            return
        left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leaving.append((call, end, left))
        self._look()
        await left

    async def fill(self) -> dict[str, float]:
        """Return how full each bound of the limit is now, in percent. Raises JournalError."""
        _, states = await self._read()
        return fill(self.limit, states.get(self._key) or TurnState(), self._clock.now())

    def _look(self) -> None:
        self._news.set()
        if not self._works:
            self._works = True
            self._tasks.begin(self._work(), name="remit:turns")

    async def _work(self) -> None:
        """Look until no call waits any more."""
        pause, longest = _LOOK_S
        try:
            while self._waiting or self._leaving:
                self._news.clear()
                at, foreign = await self._round()
                if at and not self._news.is_set():
                    seconds = max(0.0, (at - self._clock.now()) / SECOND)
                    await first(self._news.wait(), self._clock.sleep(min(pause, seconds) if foreign else seconds))
                    pause = min(2 * pause, longest)
        except Exception as error:  # noqa: BLE001 - those who wait are told
            self._fail(error)
        finally:
            self._works = False

    async def _round(self) -> tuple[int, bool]:
        """Decide on all that wait: when to look again, and whether others may make room before that."""
        while True:
            position, states = await self._read()
            now, limit = self._clock.now(), self.limit
            leaving, waiting = list(self._leaving), [wish for wish, turn in self._waiting.items() if not turn.done()]
            before = msgspec.json.encode(states)
            state = states.setdefault(self._key, TurnState())
            for each in states.values():
                each.forget(now)
            for call, end, _ in leaving:
                leave(limit, state, call, end, now)
            turns = take_turns(limit, state, waiting, now, self._process)
            after = msgspec.json.encode({key: each for key, each in states.items() if each != TurnState()})
            if after == before or await self._folds.keep([JournalFold(self._row, position + 1, after)], position):
                break
        self._failures = state.failures
        del self._leaving[: len(leaving)]
        for _, _, left in leaving:
            if not left.done():
                left.set_result(None)
        for wish in turns.begun:
            self._tell(wish, None)
        for wish, hindrance in turns.refused:
            self._tell(wish, hindrance)
        foreign = bool(state.waits.keys() - {self._process}) or not state.places.keys() <= self._inside
        return turns.at, foreign

    def _tell(self, wish: Wish, hindrance: Obstacle | None) -> None:
        turn = self._waiting.pop(wish, None)
        if turn is not None and not turn.done():
            turn.set_result(hindrance)
            if hindrance is None:
                self._inside.add(wish.id)
        elif hindrance is None:  # its caller is gone
            self._give_back(wish.id)

    def _give_back(self, call: str) -> None:
        self._inside.discard(call)
        self._leaving.append((call, "unused", asyncio.get_running_loop().create_future()))

    async def _read(self) -> tuple[int, dict[str, TurnState]]:
        rows = await self._folds.read(self._row)
        if not rows:
            return 0, {}
        try:
            return rows[0].position, msgspec.json.decode(rows[0].data, type=dict[str, TurnState])
        except msgspec.DecodeError:
            return rows[0].position, {}

    def _fail(self, error: Exception) -> None:
        for turn in self._waiting.values():
            if not turn.done():
                turn.set_exception(copy_error(error) if isinstance(error, JournalError) else error)
        self._waiting.clear()
        for _, _, left in self._leaving:
            if not left.done():
                left.set_result(None)
        if self._leaving:
            _log.warning("%s: what calls hold of a limit lapses by itself: %s", self._row, error)
        self._leaving.clear()


class Turnstiles:
    """The limits of calls."""

    def __init__(self, journal: Journal, limits: Mapping[str, CallLimit]) -> None:
        self._journal = journal
        self.limits = limits
        """The limits, by the pattern of their tools."""
        self._process = new_id("proc")
        self._tasks = Tasks()
        self._of: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._open: dict[tuple[str, str], Turnstile] = {}

    def __bool__(self) -> bool:
        return bool(self.limits)

    def patterns(self, *names: str) -> tuple[str, ...]:
        """Return the patterns of the limits that a tool or model with these names is under."""
        matching = self._of.get(names)
        if matching is None:
            if len(self._of) >= _MOST:
                self._of.clear()
            matching = self._of[names] = tuple(
                pattern for pattern in self.limits if any(name_matches(pattern, name) for name in names)
            )
        return matching

    def turnstile(self, pattern: str, caller: LimitCaller) -> Turnstile:
        """Return the turnstile of a limit that a call has to pass."""
        limit = self.limits[pattern]
        row, key = f"limits/{pattern}", ""
        if limit.each is not None:
            key = sha256(caller.value(limit.each).encode()).removeprefix("sha256:")[:_DIGITS]
            row += f"/{key[:_SHARED]}"
        turnstile = self._open.get((row, key))
        if turnstile is None:
            if len(self._open) >= _MOST:
                self._open = {name: each for name, each in self._open.items() if not each.idle}
            turnstile = self._open[row, key] = Turnstile(self._journal, row, key, limit, self._process, self._tasks)
        return turnstile

    async def fills(self) -> dict[str, dict[str, float]]:
        """Return how full each bound is of the limits that all callers share, in percent. Raises JournalError."""
        shared = [pattern for pattern, limit in self.limits.items() if limit.each is None]
        return {pattern: await self.turnstile(pattern, _NOBODY).fill() for pattern in shared}

    async def close(self) -> None:
        """Wait until places that were given back are free."""
        await self._tasks.ended()
