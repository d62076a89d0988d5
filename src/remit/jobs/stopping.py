"""A place where a replay stops, so that a person can look around in the recipe.

The look is synchronous: nothing else of the replay goes on meanwhile. Whatever it asks of the run is refused, so the
places that come after it, and with them the verdict, are those of a replay that does not stop.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from remit.codes import Code
from remit.errors import NotFoundError, UsageError
from remit.jobs.branch import Branch, current
from remit.jobs.effects.matching import Matching, effect_name
from remit.jobs.requests import Requests

if TYPE_CHECKING:
    from remit.jobs.effects.recorded import Effects
    from remit.jobs.run import Run

_OURS: Final = "remit.jobs."
_PLANS: Final = "remit.jobs.plans."
_SUSPENDS: Final = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR

Look = Callable[[FrameType, str], None]
"""Looks at the recipe's frame; the text says what the recipe wants there."""


class Stop:
    """The place where a replay stops, and what looks at it."""

    def __init__(self, step: str, look: Look) -> None:
        self.step = step
        self.reached = False
        self._look = look

    def watch(self, effects: Effects) -> StoppingMatching:
        """Have a pass stop here; to be called before its run is made."""
        effects.matching = matching = StoppingMatching(effects, self)
        return matching

    def require_reached(self, job: str) -> None:
        """Raise NotFoundError (STEP_NOT_FOUND) if the replay never came by the place."""
        if not self.reached:
            msg = f"the replay of {job} did not come by step {self.step!r:.80}"
            raise NotFoundError(msg, code=Code.STEP_NOT_FOUND, remedy=f"`remit show {job}` lists its steps.")

    def look(self, frame: FrameType, wanted: str, run: Run) -> None:
        """Look once, with the run closed."""
        self.reached = True
        requests, run.requests = run.requests, Requests()
        token = current.set(_Closed("", None))
        try:
            self._look(frame, wanted)
        finally:
            current.reset(token)
            run.requests.close()
            run.requests = requests


class StoppingMatching(Matching):
    """Matches places, and stops at one of them."""

    def __init__(self, effects: Effects, stop: Stop) -> None:
        super().__init__(effects.history, effects.activity)
        self.run: Run | None = None
        self.root: asyncio.Task[Any] | None = None
        """The task of the program, which says where a branch comes from that has no frame of the recipe."""
        self._stop = stop

    def enter(self, step: str, kind: str) -> bool:
        if step == self._stop.step and not self._stop.reached and self.run is not None:
            recorded = self._history.places.get(step)
            wanted = effect_name(kind) + ("" if recorded == kind else f"; recorded: {_said(recorded)}")
            asking = sys._getframe(1)  # noqa: SLF001 - the way to the recipe's variables
            frames = chain(_running(asking), _suspended(self.root))
            self._stop.look(next(_recipes(frames), asking), wanted, self.run)
        return super().enter(step, kind)


class _Closed(Branch):
    """The branch of an onlooker: it has no places."""

    def pass_by(self) -> None:
        raise UsageError(
            "nothing is called or recorded where a replay stops",
            remedy="Look at the recipe's variables, and let the replay go on.",
        )


def _said(recorded: str | None) -> str:
    return "nothing" if recorded is None else effect_name(recorded)


def _running(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield this frame of the running task and those that wait for it, the innermost first."""
    while frame is not None and frame.f_code.co_flags & _SUSPENDS:
        yield frame
        frame = frame.f_back


def _suspended(task: asyncio.Task[Any] | None) -> Iterator[FrameType]:
    """The frames of a task that waits in its run, the innermost first."""
    frames: list[FrameType] = []
    waiting: Any = task.get_coro() if task is not None else None
    while inspect.iscoroutine(waiting) and waiting.cr_frame is not None:
        frames.append(waiting.cr_frame)
        waiting = waiting.cr_await
    while frames and not _of_run(frames[-1]):  # what the run itself waits with
        frames.pop()
    return reversed(frames)


def _recipes(frames: Iterator[FrameType]) -> Iterator[FrameType]:
    """Yield those of them that are not the run's own."""
    return (frame for frame in frames if not _of_run(frame))


def _of_run(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.startswith(_OURS) and not module.startswith(_PLANS)
