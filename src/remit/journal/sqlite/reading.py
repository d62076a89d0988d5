"""The thread that reads: a queue and nothing else, for a pool's bookkeeping costs more than a read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

from remit.journal.batching import Task, perform

T = TypeVar("T")


class ReadThread:
    """Does what it is given, in order."""

    def __init__(self, name: str) -> None:
        """Start it; what it does is awaited on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` on the thread. Cancelling the future does not stop it."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((work, future))
        return future

    def close(self) -> None:
        """End the thread after what was asked before; blocks until then."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            perform(task, self._loop)
