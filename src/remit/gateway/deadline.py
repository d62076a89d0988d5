"""Deadlines of running calls: one timer of the event loop for all of them, for a timer each costs more than a call."""

from __future__ import annotations

import asyncio


class Deadline:
    """One call's; what it cancels with its task is told from a cancellation by the caller by counting."""

    __slots__ = ("expired", "task", "when")

    def __init__(self, task: asyncio.Task[object], when: float) -> None:
        self.task = task
        self.when = when
        self.expired = False
        """Whether the task was cancelled because time was up."""


class Deadlines:
    """Cancels tasks whose time is up."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, task: asyncio.Task[object], timeout_s: float) -> Deadline:
        """Cancel the task after `timeout_s`, unless `stop` comes first."""
        loop = task.get_loop()
        if loop is not self._loop:  # what another loop left behind can never happen any more
            self._loop, self._timer = loop, None
            self._running.clear()
        deadline = Deadline(task, loop.time() + timeout_s)
        self._running.add(deadline)
        if self._timer is None or deadline.when < self._timer.when():
            self._arm(loop, deadline.when)
        return deadline

    def extend(self, deadline: Deadline, timeout_s: float, until: float) -> None:
        """Give the task `timeout_s` from now on, but not beyond `until`, on the loop's clock."""
        deadline.when = max(deadline.when, min(deadline.task.get_loop().time() + timeout_s, until))

    def stop(self, deadline: Deadline) -> None:
        """The task is done with what the deadline was for, or was cancelled by it."""
        self._running.discard(deadline)
        if deadline.expired:
            deadline.task.uncancel()

    def _arm(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(when, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the calls whose time is over, in that order, and wait for the next of those that have not ended."""
        self._timer = None
        now = loop.time()
        for deadline in sorted((each for each in self._running if each.when <= now), key=lambda each: each.when):
            self._running.discard(deadline)
            deadline.expired = True
            deadline.task.cancel()
        if self._running:
            self._arm(loop, min(deadline.when for deadline in self._running))
