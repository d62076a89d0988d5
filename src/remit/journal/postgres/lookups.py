"""Lookups that come at the same moment are one statement: heads by name, pages of events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from remit.errors import JournalError
from remit.journal.writer import copy_error
from remit.tasks import Tasks

Key = TypeVar("Key")
Found = TypeVar("Found")

_AT_ONCE: Final = 2
"""Questions under way: one that brings much holds up no other lookup."""


class Lookups(Generic[Key, Found]):
    """Lookups of one sort."""

    def __init__(self, ask: Callable[[Sequence[Key]], Awaitable[Sequence[Found]]], most: int) -> None:
        self._ask = ask
        self._most = most
        self._waiting: list[tuple[Key, asyncio.Future[Found]]] = []
        self._asking = 0
        self._tasks = Tasks()

    async def find(self, key: Key) -> Found:
        """Return what belongs to a key; read after this was called. Raises JournalError."""
        found: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, found))
        if self._asking < _AT_ONCE:
            self._asking += 1
            self._tasks.begin(self._answer(), name="remit:journal-lookups")
        return await found

    async def _answer(self) -> None:
        try:
            await self._until_none_waits()
        finally:  # now, not once the task is seen to be done: a lookup in between would wait forever
            self._asking -= 1

    async def _until_none_waits(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            try:
                answers = await self._ask([key for key, _ in group])
            except JournalError as error:
                for _, found in group:
                    if not found.done():
                        found.set_exception(copy_error(error))
                continue
            for (_, found), answer in zip(group, answers, strict=True):
                if not found.done():
                    found.set_result(answer)
