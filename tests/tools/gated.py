"""A provider whose listings wait until they are let through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, ToolResult


async def turns(count: int = 10) -> None:
    """Let whatever can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)  # noqa: TID251 - a turn, no time


class Gated:
    """Lists its tools as they were when the listing began."""

    def __init__(self, provider_id: str, *names: str) -> None:
        self.provider_id = provider_id
        self.names = list(names)
        self.changes: dict[str, Any] = {}
        """What its tools have that others have not."""
        self.listings = 0
        self.diary: list[str] = []
        self.begun = asyncio.Event()
        self.error: BaseException | None = None
        self.when_cancelled: Exception | None = None
        self.on_list: Callable[[], object] = lambda: None
        self._gate = asyncio.Event()
        self._gate.set()

    def shut(self) -> None:
        """Have the next listings wait."""
        self.begun.clear()
        self._gate.clear()

    def open(self) -> None:
        """Let them through."""
        self._gate.set()

    async def list_tools(self) -> Sequence[ToolMeta]:
        assert self.diary[-1:] != ["listing"], "two listings at once"
        self.diary.append("listing")
        self.listings += 1
        self.begun.set()
        self.on_list()
        schema = {"input_schema": {"type": "object"}}
        metas = [ToolMeta(name=name, provider_id=self.provider_id, **(schema | self.changes)) for name in self.names]
        try:
            await self._gate.wait()
        except asyncio.CancelledError:
            await turns()  # ending takes a while
            self.diary.append("cancelled")
            if self.when_cancelled is not None:
                raise self.when_cancelled from None
            raise
        self.diary.append("listed")
        if self.error is not None:
            raise self.error
        return metas

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        raise LookupError(name)

    async def close(self) -> None:
        self.diary.append("closed")


class Following(Gated):
    """Has the names of a list that others change."""

    def outdated(self) -> bool:
        return bool(self.listings) and self.names != self.last

    async def list_tools(self) -> Sequence[ToolMeta]:
        self.last = list(self.names)
        return await super().list_tools()


class Watchable(Gated):
    """Says when its tools changed."""

    def watch(self, changed: Callable[[], None]) -> None:
        self.changed = changed
