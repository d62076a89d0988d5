"""Asking several shards at once: those that answer, or all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from typing import Final, TypeVar

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.batching import journal_closed
from remit.journal.sharded.placement import shard_of
from remit.journal.sharded.shard import Shard, ShardStore
from remit.journal.writer import copy_error
from remit.tasks import Tasks

T = TypeVar("T")
Work = Callable[[int, ShardStore], Awaitable[T]]
"""Something to do with the store of the shard of a number."""

PATIENCE_S: Final = 5.0
"""The time that a shard may take for its part of an answer before it counts as down."""


_SILENT: Final = "no answer came in time"


class Shards:
    """All shards of a journal, in order."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.every = shards
        self.count = len(shards)
        self._late = Tasks()

    def of(self, stream: str) -> Shard:
        """Return the shard of a stream."""
        return self.every[shard_of(stream, self.count)]

    async def answers(self, stream: str) -> bool:
        """Return whether the shard of a stream answers; one that is still joining has PATIENCE_S for that."""
        shard = self.of(stream)
        if shard.identity is None and shard.is_up:
            with contextlib.suppress(JournalError):  # which then stands in the shard
                await self.some(_nothing, [shard.number])
        return shard.is_up

    def by_number(self, items: Iterable[T], stream: Callable[[T], str]) -> dict[int, list[T]]:
        """Return items by the number of the shard that their stream is on."""
        groups: dict[int, list[T]] = {}
        for item in items:
            groups.setdefault(shard_of(stream(item), self.count), []).append(item)
        return groups

    async def some(self, work: Work[T], numbers: Iterable[int] | None = None) -> dict[int, T]:
        """Return the answers, by number, of all shards or of these, without those that are down.

        One that does not answer in time counts as down. Raises JournalError if all are down, or one has another fault.
        """
        shards = [*self.every] if numbers is None else [self.every[number] for number in numbers]
        tasks = {shard: asyncio.create_task(_ask(shard, work)) for shard in shards}
        await self._in_time(tasks)
        for shard, task in tasks.items():
            if not task.done() or task.cancelled():
                shard.fail(_SILENT)
        ended = {shard: task for shard, task in tasks.items() if task.done() and not task.cancelled()}
        errors = [error for task in ended.values() if (error := task.exception()) is not None]
        for error in errors:
            if not isinstance(error, JournalError) or error.code is not Code.JOURNAL_SHARD_UNAVAILABLE:
                raise error
        answers = {shard.number: task.result() for shard, task in ended.items() if task.exception() is None}
        for shard in shards if not answers else ():
            raise copy_error(shard.failure) if shard.failure is not None else journal_closed()
        return answers

    async def all(self, work: Work[T]) -> list[T]:
        """Return the answers of all shards. Raises JournalError (JOURNAL_SHARD_UNAVAILABLE) if one is down."""
        answers = await self.some(work)
        self.insist(answers)
        return [answers[number] for number in range(self.count)]

    def insist(self, answers: Container[int]) -> None:
        """Raise JournalError (JOURNAL_SHARD_UNAVAILABLE) if the answer of a shard is missing."""
        for shard in self.every:
            if shard.number not in answers:
                raise copy_error(shard.failure) if shard.failure is not None else journal_closed()

    async def _in_time(self, tasks: dict[Shard, asyncio.Task[T]]) -> None:
        """Wait for all of them, and no longer than PATIENCE_S; the others end by themselves, unheard."""
        if not tasks:
            return
        try:
            _, late = await asyncio.wait(tasks.values(), timeout=PATIENCE_S)
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
            await asyncio.wait(tasks.values())
            raise
        for task in late:
            task.cancel()
            task.add_done_callback(_heard)
            self._late.keep(task)


async def _nothing(_number: int, _store: ShardStore) -> None:
    """Ask only whether it is there."""


async def _ask(shard: Shard, work: Work[T]) -> T:
    return await shard.ask(lambda store: work(shard.number, store))


def _heard(task: asyncio.Task[T]) -> None:
    """Take notice of how it ended, so that it is not reported as forgotten."""
    if not task.cancelled():
        task.exception()
