"""Matches the places a recipe comes by with those that are recorded, and ends the pass if they differ."""

from __future__ import annotations

import asyncio
import time
from itertools import zip_longest
from typing import Final

from remit.errors import JournalError, NondeterminismError
from remit.jobs.routes import LackingError
from remit.jobs.spans import Activity
from remit.jobs.state import History

_NO_GATHER: Final = "-"
"""No place begins with it."""
_SLICE_S: Final = 0.005
"""Seconds a run may go on without giving other runs of the process a turn."""
_NAMES: Final = {
    "time": "a clock reading",
    "random": "a random number",
    "uuid": "a UUID",
    "call": "a tool call",
    "model": "a question to a model",
    "child": "another recipe",
    "compensation": "undoing what was done",
}


class Matching:
    """The places of one pass over a job."""

    def __init__(self, history: History, activity: Activity) -> None:
        self.failure: BaseException | None = None
        """Ends the pass: no effect that the recipe asks for after it is answered."""
        self.left = set(history.places)
        """Recorded places the recipe has not come by yet."""
        self._history = history
        self._activity = activity
        self._left_in: dict[str, list[str]] | None = None
        """Those that were left when the first new effect began, by every branch they lie in."""
        self._whole: set[tuple[str, str]] = set()
        """Branches in which nothing recorded is left, except within their gather at this place."""
        self._over = False
        self._cut: NondeterminismError | None = None
        self._turn_ends = time.monotonic() + _SLICE_S

    def enter(self, step: str, kind: str) -> bool:
        """Come by a place with an effect of this kind; whether to `give_way` before it. Raises NondeterminismError."""
        if self.failure is not None:
            return True
        self.left.discard(step)
        recorded = self._history.places.get(step)
        if recorded is not None and recorded != kind:
            raise self.fail(NondeterminismError(step, effect_name(recorded), effect_name(kind)))
        return time.monotonic() >= self._turn_ends

    async def give_way(self, step: str) -> None:
        """Let other runs of the process go on; if this pass is over, wait for its end."""
        if self.failure is None:
            with self.guarded(step):
                await asyncio.sleep(0)  # noqa: TID251 - gives way, waits for nothing
            self._turn_ends = time.monotonic() + _SLICE_S
        if self.failure is not None:
            self.go_on()
            # The recipe has caught the error and goes on. It waits here for the end of the pass.
            self._activity.block()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._activity.unblock()

    def begin(self, step: str, kind: str) -> None:
        """Begin a new effect. Raises NondeterminismError if a recorded one before it is left: it would be done again.

        Every branch but the effect's own stands still at a gather, whose other branches may be anywhere in their
        record.
        """
        if not self.left:
            return
        if self._left_in is None:
            self._left_in = {}
            for place in self.left:
                for branch in _branches(place):
                    self._left_in.setdefault(branch, []).append(place)
        branches = _branches(step)
        for branch, gather in zip_longest(branches[::2], branches[1::2], fillvalue=_NO_GATHER):
            if (branch, gather) not in self._whole:
                self._check_whole(branch, gather, f"{effect_name(kind)} at {step} without it")
                self._whole.add((branch, gather))

    def _check_whole(self, branch: str, gather: str, asked: str) -> None:
        for place in self._left_in.get(branch, ()) if self._left_in else ():
            if place in self.left and not place.startswith(gather):
                raise self.fail(NondeterminismError(place, effect_name(self._history.places[place]), asked))

    def guarded(self, step: str) -> _CancellationGuard:
        """Guard an effect under way: the pass ends if the effect is cut short."""
        return _CancellationGuard(self, step)

    # --- the end of the pass

    def fail(self, error: BaseException) -> BaseException:
        """End the pass with this error, even if the recipe catches it."""
        if self.failure is None:
            self.failure = error
        return error

    def cut_short(self, step: str) -> None:
        """Record that an effect under way was cancelled: by the recipe's own clock, unless the whole pass is over."""
        if self.failure is None:
            asked = "to give it up: use timeout= of the step instead of asyncio.timeout around it"
            self._cut = self.failure = NondeterminismError(step, "an effect under way", asked)

    def over(self) -> None:
        """End the pass: the recipe begins nothing more, whatever it does on its way out."""
        self._over = True
        if self.failure is None or self.failure is self._cut:
            self.failure = asyncio.CancelledError()

    def go_on(self) -> None:
        """Raise CancelledError if the pass is over."""
        if self._over:
            raise asyncio.CancelledError

    def finish(self) -> None:
        """End the recipe: nothing that is recorded may be left out."""
        skipped = self.skipped
        if skipped is not None and self.failure is None:
            recorded = effect_name(self._history.places[skipped])
            self.fail(NondeterminismError(skipped, recorded, "nothing there any more"))

    @property
    def skipped(self) -> str | None:
        """The first recorded place the recipe has not come by yet."""
        return next((step for step in self._history.places if step in self.left), None) if self.left else None


class _CancellationGuard:
    """Ends the pass if an effect is cut short: by the journal, by what is lacking here, or by the recipe's own code.

    The recipe would otherwise go on without knowing the outcome, and go another way than when it runs again.
    """

    __slots__ = ("_matching", "_step")

    def __init__(self, matching: Matching, step: str) -> None:
        self._matching = matching
        self._step = step

    def __enter__(self) -> None:
        """Do nothing: how it ends is what counts."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, JournalError | LackingError):
            self._matching.fail(error)
        elif isinstance(error, asyncio.CancelledError):
            self._matching.cut_short(self._step)


def effect_name(kind: str) -> str:
    """A kind of effect in words."""
    return _NAMES.get(kind, f"a wait ({kind})")


def _branches(place: str) -> list[str]:
    """Every branch a place lies in, the root first."""
    return [""] + [place[: end + 1] for end, char in enumerate(place) if char == "."]
