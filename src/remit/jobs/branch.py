"""Places in a run. An effect's place is its key, so it must be the same every time the recipe runs.

The root branch counts its effects 1, 2, 3 …; a gather at place 4 opens the branches 4.0, 4.1 …, whose effects are
4.0.1, 4.0.2 … An explicit key stands in for the number: `4.0.charge`. A branch belongs to one asyncio task: inside it
order is the program's order, and no two branches share a counter, so scheduling cannot change a place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from remit.codes import Code
from remit.errors import RunError, UsageError
from remit.frames import exit_words
from remit.regex import regex

if TYPE_CHECKING:
    from remit.gateway.conversation import Conversation

T = TypeVar("T")

OWN_LIMIT: Final = (
    "Give a step its own timeout=, which is recorded, instead of asyncio.timeout or asyncio.wait_for around it."
)
_KEY: Final = regex(r"[a-z][a-z0-9_-]{0,79}")


class RunBranch:
    """A sequence of effects within a run."""

    __slots__ = ("_keys", "_next", "_opener", "_prefix", "task")

    def __init__(self, prefix: str, task: asyncio.Task[object] | None, opener: RunBranch | None = None) -> None:
        self._prefix = prefix
        self._opener = opener
        self._next = 0
        self._keys: set[str] = set()
        self.task = task

    def place(self, key: str | None = None) -> str:
        """The next place, or the one of an explicit key. Raises RunError or UsageError."""
        if asyncio.current_task() is not self.task:
            self.pass_by()
        if key is None:
            self._next += 1
            return f"{self._prefix}{self._next}"
        if not _KEY.fullmatch(key):
            raise UsageError(f"{key!r} is not a key: a letter, then letters, digits, '-' and '_' (lower case)")
        if key in self._keys:
            raise RunError(
                f"the key {key!r} is used twice in one branch",
                code=Code.DUPLICATE_STEP_KEY,
                remedy="Give each effect its own key, or none.",
            )
        self._keys.add(key)
        return f"{self._prefix}{key}"

    def pass_by(self) -> None:
        """Come by without taking a place. Raises RunError (FOREIGN_TASK) in a task that the run did not create."""
        if asyncio.current_task() is not self.task:
            raise RunError(
                "an effect was started from a task that the run did not create",
                code=Code.FOREIGN_TASK,
                remedy="Use run.gather for parallel work, and timeout= instead of asyncio.wait_for.",
            )

    @property
    def limited(self) -> bool:
        """Return whether an `asyncio.timeout` is open around the branch: here, or where it was opened.

        In Python 3.12 and newer `asyncio.wait_for` is one too.
        """
        tasks, branch = set[asyncio.Task[object] | None](), self
        while True:
            tasks.add(branch.task)
            if branch._opener is None:
                break
            branch = branch._opener
        # asyncio has no list of limits. Its own loops keep their timers here; other loops are not looked at.
        timers = getattr(asyncio.get_running_loop(), "_scheduled", ())
        limits = (getattr(timer._callback, "__self__", None) for timer in timers)  # noqa: SLF001 - the only way to them
        return any(isinstance(limit, asyncio.Timeout) and getattr(limit, "_task", None) in tasks for limit in limits)


current: Final[ContextVar[RunBranch]] = ContextVar("remit_branch")
"""The branch that the running code belongs to."""
asking: Final[ContextVar[Conversation | None]] = ContextVar("remit_asking", default=None)
"""The knowledge of the model for which the running code works; None: it works for no model."""


async def ends(work: Awaitable[T]) -> T:
    """Do work of the user's. What it raises to end the process ends the work: RunError, with the words of the exit."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        text = exit_words(error)
        if not text:
            raise
        failure = RunError(
            f"the recipe {text}", remedy="Raise an exception or return: a recipe ends its own job alone."
        )
        raise failure.with_traceback(error.__traceback__) from error


def contain(loop: asyncio.AbstractEventLoop) -> None:
    """Have every task that a recipe creates on this loop end as `ends` does: asyncio would end the loop instead."""
    inner = loop.get_task_factory()
    if inner is not None and getattr(inner, "contains", False):
        return

    def task_of(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        context = options.get("context")
        if (current.get(None) if context is None else context.get(current)) is not None:
            work = ends(work)
        return asyncio.Task(work, loop=loop, **options) if inner is None else inner(loop, work, **options)

    task_of.contains = True  # type: ignore[attr-defined] # how the next recipe knows it
    loop.set_task_factory(task_of)


class Countdown:
    """Calls `end` when so many tasks have ended, at the very moment the last one does."""

    def __init__(self, count: int, end: Callable[[], object]) -> None:
        self._count = count
        self._end = end

    def one(self, _task: asyncio.Task[Any]) -> None:
        """One task has ended."""
        self._count -= 1
        if self._count == 0:
            self._end()
