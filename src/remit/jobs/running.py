"""A program under way: its task, and the places it comes by."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from remit.errors import RunError
from remit.jobs.branch import Branch, contain, current, ends

if TYPE_CHECKING:
    from remit.jobs.effects.recorded import Effects
    from remit.jobs.run import Run


class Running:
    """A program that runs in a task of its own, from its beginning."""

    def __init__(self, run: Run, effects: Effects, start: Callable[[Run], Awaitable[Any]]) -> None:
        self.matching = effects.matching
        self.activity = effects.activity
        self.stopped = False
        contain(asyncio.get_running_loop())
        self.task = asyncio.create_task(_rooted(run, start), name=f"remit:{run.job_id}")
        self.task.add_done_callback(lambda _task: self.activity.attention.set())

    @property
    def done(self) -> bool:
        """Return whether the program has come to an end."""
        return self.task.done()

    @property
    def quiet(self) -> bool:
        """Return whether every branch waits, and nothing has happened since that could end a wait."""
        return self.activity.active == 0 and not self.activity.attention.is_set() and not self.done

    def outcome(self) -> BaseException | None:
        """The error of a program that is done; None if it returned."""
        if not self.task.cancelled():
            return self.task.exception()
        if self.task.cancelling():
            self.matching.over()  # not by its own code: the process stops, and everything with it
        return RunError("the recipe cancelled itself", remedy="Do not let the recipe raise CancelledError itself.")

    async def stop(self) -> None:
        """End the program because a person wants the job to stop."""
        self.stopped = True
        await self.end()

    async def end(self) -> None:
        """End the program, wherever it is; it begins nothing more."""
        self.matching.over()
        await end(self.task)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end; its error, if any, was looked at before or is of no interest."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def _rooted(run: Run, start: Callable[[Run], Awaitable[Any]]) -> Any:
    current.set(Branch("", asyncio.current_task()))
    try:
        result = await ends(start(run))
    except BaseException:
        run.requests.close()
        raise
    run.requests.settle()
    return result
