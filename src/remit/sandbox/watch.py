"""Ends a run for a limit that it passed: its time, and what only looking finds out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from remit.clock import SystemClock
from remit.sandbox.cgroups import Leaf
from remit.sandbox.spec import Spec
from remit.sandbox.watching import Seen, look, size_of

_EVERY_S: Final = 0.05
_SELDOM_S: Final = 1.0
"""For a program that lasts."""
_SHARE: Final = 10
"""Measuring a workspace may take one part in so many of the time …"""
_MOST: Final = 20
"""… but is not put off for longer than so many looks: on a busy machine it takes long, and files go on coming."""


def wait_after(took: float, every: float) -> float:
    """Seconds from one measuring of a workspace to the next, if it took so long and looks come `every` so many."""
    return min(max(every, took * _SHARE), every * _MOST)


class Watch:
    """Watches one run, from when its program begins."""

    def __init__(self, spec: Spec, first: int | None, leaf: Leaf | None, stop: Callable[[str], None]) -> None:
        """Watch processes from `first` on, and the workspace.

        Without `first` and `leaf` no process is watched: something else holds what they use.
        """
        self.seen: Seen | None = None
        """The most that was seen."""
        self.found = ""
        """A limit that the run turned out to have passed once it was over."""
        self._spec = spec
        self._first = first
        self._leaf = leaf
        self._stop = stop
        self._clock = SystemClock()
        self._timer = asyncio.get_running_loop().call_later(spec.limits.wall_ms / 1000, stop, "wall_ms")
        self._task = asyncio.create_task(self._look(), name="remit:sandbox-watch")

    async def ended(self) -> None:
        """The run is over: look at its workspace once more, and no more after that."""
        self._timer.cancel()
        if self._task.done():
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        self.found = await self._measured()

    async def _look(self) -> None:
        limits, measured = self._spec.limits, 0.0
        every = _EVERY_S if self._spec.feed is None else _SELDOM_S
        while True:
            await self._clock.sleep(every)
            used = self._used()
            if used.cpu_ms > limits.cpu_ms:
                self._stop("cpu_ms")
            elif used.memory_bytes > limits.memory_bytes:
                self._stop("memory_bytes")
            elif used.pids > limits.pids:
                self._stop("pids")
            began = self._clock.monotonic()
            if began >= measured:
                if found := await self._measured():
                    self._stop(found)
                took = self._clock.monotonic() - began
                measured = began + wait_after(took, every)

    async def _measured(self) -> str:
        """The limit that the workspace passed, if one did."""
        limits = self._spec.limits
        size, files = await asyncio.to_thread(size_of, self._spec.workspace)
        if size > limits.workspace_bytes:
            return "workspace_bytes"
        return "workspace_files" if files > limits.workspace_files else ""

    def _used(self) -> Seen:
        if self._leaf is not None:
            return Seen(self._leaf.counted().cpu_ms or 0, 0, 0)
        if self._first is None:
            return Seen(0, 0, 0)
        now, most = look(self._first), self.seen or Seen(0, 0, 0)
        self.seen = Seen(*map(max, zip(now, most, strict=True)))
        return now
