"""Any order of changes, listings, calls and cancellations: no call is resolved by what it could know to be old."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from remit.tools.catalog import Catalog, Tool
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, ToolResult
from tests.tools.gated import turns

NAMES: Final = ("mcp.a.x", "mcp.b.x", "local.x")
IDS: Final = ("mcp_a", "mcp_b", "local")


class Versioned:
    """A provider of one tool, whose version is that of the moment the listing began."""

    def __init__(self, provider_id: str, name: str) -> None:
        self.provider_id = provider_id
        self.name = name
        self.version = 0
        self.pending: asyncio.Future[None] | None = None

    async def list_tools(self) -> Sequence[ToolMeta]:
        assert self.pending is None, "two listings at once"
        version = str(self.version)
        self.pending = asyncio.get_running_loop().create_future()
        try:
            await self.pending
        finally:
            self.pending = None
        return [ToolMeta(name=self.name, provider_id="", input_schema={"type": "object"}, version=version)]

    def finish(self) -> None:
        """End the listing under way, if there is one."""
        if self.pending is not None and not self.pending.done():
            self.pending.set_result(None)

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        raise LookupError(name)

    async def close(self) -> None:
        return None


@dataclass
class Asked:
    """A call under way, and what it may not go behind."""

    task: asyncio.Task[list[Tool]]
    name: str
    least: int

    def check(self) -> None:
        """It waits, was cancelled, or has a tool at least as new as the call."""
        if self.task.done() and not self.task.cancelled():
            (tool,) = [tool for tool in self.task.result() if tool.meta.name == self.name]
            assert int(tool.meta.version) >= self.least


class Play:
    """A catalog, its providers and its callers."""

    def __init__(self) -> None:
        self.providers = [Versioned(each, name) for each, name in zip(IDS, NAMES, strict=True)]
        self.catalog = Catalog(self.providers)
        self.asked: list[Asked] = []

    def change(self, number: int) -> None:
        its = self.providers[number]
        its.version += 1
        self.catalog.invalidate(its.provider_id)

    def finish(self, number: int) -> None:
        self.providers[number].finish()

    def resolve(self, number: int) -> None:
        self._ask(number, self._resolved(self.providers[number].name))

    def wire(self, number: int) -> None:
        self._ask(number, self._resolved(self.providers[number].name.replace(".", "__")))

    def tools(self, number: int) -> None:
        self._ask(number, self.catalog.tools())

    def cancel(self, number: int) -> None:
        if self.asked:
            self.asked[number % len(self.asked)].task.cancel()

    async def finished(self, tasks: Sequence[asyncio.Task[list[Tool]]]) -> None:
        """Let listings end, by which the tasks have to."""
        for _ in range(200):
            for its in self.providers:
                its.finish()
            await turns(1)
        assert all(task.done() for task in tasks), "somebody waits for ever"

    def check(self) -> None:
        for one in self.asked:
            one.check()

    async def _resolved(self, name: str) -> list[Tool]:
        return [(await self.catalog.resolve(name, {}))[0]]

    def _ask(self, number: int, coroutine: Coroutine[Any, Any, list[Tool]]) -> None:
        its = self.providers[number]
        self.asked.append(Asked(asyncio.create_task(coroutine), its.name, its.version))


which = st.integers(0, len(IDS) - 1)
moves = st.one_of(
    st.tuples(st.sampled_from([Play.change, Play.finish, Play.resolve, Play.wire, Play.tools]), which),
    st.tuples(st.just(Play.cancel), st.integers(0, 20)),
)


@given(st.lists(st.tuples(moves, st.integers(0, 3)), max_size=40))
async def test_no_interleaving_gives_an_old_tool_or_loses_a_change(script: list[tuple[tuple[Any, int], int]]) -> None:
    play = Play()
    for (move, number), pause in script:
        move(play, number)
        await turns(pause)
    play.check()
    await play.finished([one.task for one in play.asked])
    play.check()
    last = asyncio.create_task(play.catalog.tools())
    await play.finished([last])
    assert [(tool.meta.name, int(tool.meta.version)) for tool in await last] == sorted(
        (its.name, its.version) for its in play.providers
    )
    await play.catalog.close()
