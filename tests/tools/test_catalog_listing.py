from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.catalog import Catalog, ResolveError
from remit.tools.meta import ToolMeta
from remit.tools.provider import CallContext, ToolResult


class Counted:
    """Counts its listings; may wait or fail in them."""

    def __init__(self, provider_id: str, *names: str) -> None:
        self.provider_id = provider_id
        self.names: list[Any] = list(names)
        self.listings = 0
        self.closings = 0
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self.error: BaseException | None = None

    async def list_tools(self) -> Sequence[ToolMeta]:
        self.listings += 1
        self.begun.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return [
            ToolMeta(name=name, provider_id="stub", input_schema={"type": "object"}) if isinstance(name, str) else name
            for name in self.names
        ]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        raise LookupError(name)

    async def close(self) -> None:
        self.closings += 1
        if self.error is not None:
            raise self.error


async def names_of(catalog: Catalog) -> list[str]:
    return [tool.meta.name for tool in await catalog.tools()]


async def test_providers_are_listed_once_however_often_tools_are_looked_up() -> None:
    one, other = Counted("one", "a.a"), Counted("other", "b.b")
    catalog = Catalog([one, other])
    for _ in range(3):
        await catalog.resolve("a.a", {})
        await catalog.tools()
        with pytest.raises(ResolveError):
            await catalog.resolve("no.such", {})
    assert (one.listings, other.listings) == (1, 1)


async def test_those_who_come_together_share_one_listing() -> None:
    only = Counted("one", "a.a")
    catalog = Catalog([only])
    only.go.clear()
    waiting = [asyncio.ensure_future(catalog.resolve("a.a", {})) for _ in range(5)]
    await only.begun.wait()
    only.go.set()
    assert {tool.meta.name for tool, _ in await asyncio.gather(*waiting)} == {"a.a"}
    assert only.listings == 1


async def test_only_an_invalidated_provider_is_listed_again() -> None:
    one, other = Counted("one", "a.a"), Counted("other", "b.b")
    catalog = Catalog([one, other])
    await catalog.tools()
    one.names.append("a.new")
    assert await names_of(catalog) == ["a.a", "b.b"]
    catalog.invalidate("one")
    assert await names_of(catalog) == ["a.a", "a.new", "b.b"]
    assert (one.listings, other.listings) == (2, 1)
    catalog.invalidate("nobody")
    await catalog.tools()
    assert (one.listings, other.listings) == (2, 1)


async def test_a_refresh_lists_all_of_them_again() -> None:
    one, other = Counted("one", "a.a"), Counted("other", "b.b")
    catalog = Catalog([one, other])
    await catalog.refresh()
    await catalog.refresh()
    assert (one.listings, other.listings) == (2, 2)


async def test_an_unknown_name_waits_for_a_listing_that_is_under_way() -> None:
    slow = Counted("slow", "a.a")
    catalog = Catalog([slow])
    slow.go.clear()
    first = asyncio.ensure_future(catalog.tools())
    await slow.begun.wait()
    second = asyncio.ensure_future(catalog.resolve("a.a", {}))
    slow.go.set()
    await first
    assert (await second)[0].meta.name == "a.a"


async def test_a_slow_listing_of_one_provider_does_not_hold_calls_of_another() -> None:
    slow, quick = Counted("slow", "a.a"), Counted("quick", "b.b")
    catalog = Catalog([slow, quick])
    await catalog.tools()
    slow.go.clear()
    slow.begun.clear()
    catalog.invalidate("slow")
    waiting = asyncio.ensure_future(catalog.resolve("a.a", {}))
    await slow.begun.wait()
    assert (await catalog.resolve("b.b", {}))[0].meta.name == "b.b"
    assert not waiting.done()
    slow.go.set()
    await waiting


async def test_what_is_invalidated_while_it_is_listed_is_listed_again() -> None:
    only = Counted("only", "a.a")
    catalog = Catalog([only])
    only.go.clear()
    first = asyncio.ensure_future(catalog.tools())
    await only.begun.wait()
    catalog.invalidate("only")
    only.go.set()
    await first
    await catalog.tools()
    assert only.listings == 2
    await catalog.tools()
    assert only.listings == 2


async def test_a_cancelled_listing_is_made_by_the_next_who_asks() -> None:
    only = Counted("only", "a.a")
    catalog = Catalog([only])
    only.go.clear()
    first = asyncio.ensure_future(catalog.tools())
    await only.begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    only.go.set()
    assert await names_of(catalog) == ["a.a"]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ProviderError("no such command", cause=Code.SpawnFailed), "SpawnFailed: no such command"),
        (RuntimeError("defect"), "RuntimeError: defect"),
        (TimeoutError(), "TimeoutError"),
    ],
)
async def test_a_failing_provider_never_empties_the_others(error: Exception, why: str) -> None:
    bad, good = Counted("bad", "a.a"), Counted("good", "b.b")
    bad.error = error
    catalog = Catalog([bad, good])
    assert await names_of(catalog) == ["b.b"]
    assert catalog.failures == {"bad": why}


async def test_who_asks_for_a_tool_of_a_failed_provider_learns_of_the_failure() -> None:
    bad = Counted("bad", "a.a")
    bad.error = ProviderError("gone", cause=Code.ConnectionError)
    with pytest.raises(ResolveError, match="the tools of bad are not known: ConnectionError: gone"):
        await Catalog([bad]).resolve("a.a", {})


async def test_a_failed_provider_has_no_tools_until_it_is_listed_again() -> None:
    only = Counted("only", "a.a")
    catalog = Catalog([only])
    assert await names_of(catalog) == ["a.a"]
    only.error = RuntimeError("down")
    catalog.invalidate("only")
    assert await names_of(catalog) == []
    only.error = None
    catalog.invalidate("only")
    assert await names_of(catalog) == ["a.a"]
    assert catalog.failures == {}


async def test_a_provider_that_never_lists_counts_as_failed() -> None:
    hanging, good = Counted("hanging"), Counted("good", "b.b")
    hanging.go.clear()
    catalog = Catalog([hanging, good], list_timeout_s=0)
    await catalog.tools()
    assert catalog.failures["hanging"] == "no list within 0 s"


async def test_a_name_listed_twice_is_withheld() -> None:
    catalog = Catalog([Counted("only", "a.a", "a.a", "b.b")])
    tools = {tool.meta.name: tool.quarantined for tool in await catalog.tools()}
    assert tools == {"a.a": "its provider lists the name 2 times", "b.b": None}


async def test_what_is_no_list_of_tools_counts_as_failure() -> None:
    odd = Counted("odd")
    odd.names = [3]
    catalog = Catalog([odd, Counted("good", "b.b")])
    assert await names_of(catalog) == ["b.b"]
    assert "odd" in catalog.failures


async def test_close_closes_every_provider_though_one_fails() -> None:
    bad, good = Counted("bad"), Counted("good")
    bad.error = RuntimeError("stuck")
    catalog = Catalog([bad, good])
    await catalog.close()
    await catalog.close()
    assert (bad.closings, good.closings) == (2, 2)
    assert catalog.failures == {"bad": "RuntimeError: stuck"}
