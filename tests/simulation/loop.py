"""An event loop that never waits: where every task waits, it asks what should happen next."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class StuckError(Exception):
    """Every task waits, and nothing is left that could happen."""


class _Selector(selectors.SelectSelector):
    """Asked for what to wait for, it lets something happen instead."""

    def __init__(self) -> None:
        super().__init__()
        self.idle: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing ever comes from outside."""
        if (timeout is None or timeout > 0) and not self.idle():
            raise StuckError
        return []


class SteeredLoop(asyncio.SelectorEventLoop):
    """Tasks run in the order they became ready; time stands still unless `now` moves."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self._steered = _Selector()
        self._now = now
        super().__init__(self._steered)

    def time(self) -> float:
        """Seconds, by a clock that is not the machine's."""
        return self._now()

    def run(self, main: Coroutine[Any, Any, T], idle: Callable[[], bool]) -> T:
        """Run `main` to its end. `idle` makes one thing happen while every task waits; False: there is nothing."""
        self._steered.idle = idle
        return self.run_until_complete(main)

    def end(self) -> None:
        """Cancel what is left, and close."""
        left = asyncio.all_tasks(self)
        for task in left:
            task.cancel()
        if left:
            self.run(_all(left), lambda: False)
        self.close()


async def _all(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
