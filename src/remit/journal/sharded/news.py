"""News of all shards as news of one journal: what is told of any of them ends a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from remit.errors import JournalError
from remit.journal.sharded.asking import Shards
from remit.journal.sharded.shard import Shard, ShardStore
from remit.journal.watch import Watch

Wait = Callable[[ShardStore, int], Awaitable[int]]


class News:
    """Follows each shard from the first wait on, and again once it is back."""

    def __init__(self, shards: Shards, watch: Watch) -> None:
        self._shards, self._watch = shards, watch
        self._followed: dict[int, list[asyncio.Task[None]]] = {}
        self._beginning = asyncio.Lock()

    async def listening(self) -> None:
        """Return once nothing that is written from now on, to a shard that is up, goes unnoticed."""
        async with self._beginning:
            new = [shard for shard in self._shards.every if shard.is_up and not self._is_followed(shard)]
            if new:
                marks = await self._shards.some(lambda _, store: _marks(store), [shard.number for shard in new])
                for shard in new:
                    if shard.number in marks:
                        self._follow(shard, *marks[shard.number])

    async def close(self) -> None:
        """Follow no more."""
        tasks = [task for pair in self._followed.values() for task in pair]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _is_followed(self, shard: Shard) -> bool:
        tasks = self._followed.get(shard.number, [])
        return bool(tasks) and not any(task.done() for task in tasks)

    def _follow(self, shard: Shard, events: int, heads: int) -> None:
        for task in self._followed.get(shard.number, []):
            task.cancel()
        self._followed[shard.number] = [
            asyncio.create_task(self._pass_on(shard, wait, mark), name=f"remit:shard-{shard.number}-news")
            for wait, mark in ((_changed, events), (_heads_changed, heads))
        ]

    async def _pass_on(self, shard: Shard, wait: Wait, mark: int) -> None:
        try:
            while True:
                mark = await shard.ask(lambda store, seen=mark: wait(store, seen))  # type: ignore[misc] # its default is an int
                self._watch.notify(heads=wait is _heads_changed)
        except JournalError:
            return  # it is down, or closed: who waits hears of it when it is back


async def _marks(store: ShardStore) -> tuple[int, int]:
    return await store.changed(0), await store.heads_changed(0)


async def _changed(store: ShardStore, since: int) -> int:
    return await store.changed(since)


async def _heads_changed(store: ShardStore, since: int) -> int:
    return await store.heads_changed(since)
