"""Many slow, dying and changing providers do not hurt each other."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.catalog import Catalog, ResolveError
from tests.tools.gated import Gated, Watchable, turns


def started(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.create_task(coroutine)


async def resolved(catalog: Catalog, name: str) -> str:
    tool, _ = await catalog.resolve(name, {})
    return tool.meta.provider_id


async def names_of(catalog: Catalog, patience_s: float | None = None) -> list[str]:
    return [tool.meta.name for tool in await catalog.tools(patience_s)]


# --- only who matters is waited for


@pytest.mark.parametrize("name", ["mcp.git.log", "mcp__git__log", "fs.read", "fs__read", "fs_read", "git"])
async def test_a_call_does_not_wait_for_a_server_that_cannot_have_its_tool(name: str) -> None:
    slow, git, local = Gated("mcp_slow", "mcp.slow.x"), Gated("mcp_git", "mcp.git.log"), Gated("local", "fs.read")
    slow.shut()
    catalog = Catalog([slow, git, local])
    assert await resolved(catalog, name) in {"mcp_git", "local"}
    assert slow.listings == 0


@pytest.mark.parametrize("name", ["mcp.git.log", "mcp__git__log", "git"])
async def test_a_servers_tool_waits_for_that_server(name: str) -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.shut()
    catalog = Catalog([git])
    call = started(catalog.resolve(name, {}))
    await git.begun.wait()
    git.open()
    assert (await call)[0].meta.name == "mcp.git.log"


@pytest.mark.parametrize("name", ["mcp.git.log", "mcp__git__log"])
async def test_a_servers_tool_waits_for_nobody_else(name: str) -> None:
    git, local = Gated("mcp_git", "mcp.git.log"), Gated("local", "fs.read")
    local.shut()
    catalog = Catalog([git, local])
    assert await resolved(catalog, name) == "mcp_git"
    assert local.listings == 0


@pytest.mark.parametrize("name", ["mcp.nobody.x", "mcp__nobody__x", "no.such", "no__such", "nobody", "mcp."])
async def test_a_name_no_server_bears_waits_for_no_server(name: str) -> None:
    slow = Gated("mcp_slow", "mcp.slow.x")
    slow.shut()
    catalog = Catalog([slow])
    with pytest.raises(ResolveError, match="no tool is called"):
        await catalog.resolve(name, {})
    assert slow.listings == 0


@pytest.mark.parametrize("providers", [["local"], ["local", "mcp_git"]])
async def test_somebody_may_stand_in_for_a_server_that_is_not_there_or_has_no_such_tool(providers: list[str]) -> None:
    tools = {"local": ["mcp.git.log"], "mcp_git": []}
    catalog = Catalog([Gated(each, *tools[each]) for each in providers])
    assert await resolved(catalog, "mcp.git.log") == "local"


async def test_a_key_waits_for_all_it_may_cover() -> None:
    server, local = Gated("mcp_web_get", "mcp.web_get.page"), Gated("local", "web.get")
    local.shut()
    catalog = Catalog([server, local])
    call = started(catalog.resolve("web_get", {"operation": "get"}))
    await server.begun.wait()
    await local.begun.wait()
    local.open()
    assert (await call)[0].meta.name == "web.get"


async def test_who_may_be_preferred_is_heard_before_a_name_is_first_given_away() -> None:
    first = Gated("builtin", "web.get")
    first.shut()
    catalog = Catalog([first, Gated("stub", "web.get")])
    call = started(resolved(catalog, "web.get"))
    await first.begun.wait()
    await turns()
    assert catalog.known("web.get") is not None
    later = started(resolved(catalog, "web.get"))
    await turns()
    assert not call.done()
    assert not later.done()
    first.open()
    assert (await call, await later) == ("builtin", "builtin")


async def test_a_server_that_has_listed_can_be_used_while_another_has_not() -> None:
    slow, git = Gated("mcp_slow", "mcp.slow.x"), Gated("mcp_git", "mcp.git.log")
    slow.shut()
    catalog = Catalog([slow, git])
    everything = started(names_of(catalog))
    await slow.begun.wait()
    assert await resolved(catalog, "mcp.git.log") == "mcp_git"
    assert not everything.done()
    slow.open()
    assert await everything == ["mcp.git.log", "mcp.slow.x"]


async def test_only_failures_that_bear_on_a_name_are_told() -> None:
    dead, git = Gated("mcp_dead"), Gated("mcp_git")
    dead.error = ProviderError("no such command", cause=Code.SpawnFailed)
    catalog = Catalog([dead, git])
    await catalog.tools()
    with pytest.raises(ResolveError, match="the tools of mcp_dead are not known: SpawnFailed"):
        await catalog.resolve("mcp.dead.x", {})
    with pytest.raises(ResolveError) as error:
        await catalog.resolve("mcp.git.x", {})
    assert error.value.reason == "no tool is called 'mcp.git.x'"


# --- staleness


async def test_a_listing_that_was_overtaken_by_a_change_resolves_no_later_call() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    catalog = Catalog([git])
    git.shut()
    early = started(catalog.resolve("mcp.git.log", {}))
    await git.begun.wait()
    git.names = ["mcp.git.new"]
    catalog.invalidate("mcp_git")
    late = started(catalog.resolve("mcp.git.log", {}))
    await turns()
    git.open()
    assert (await early)[0].meta.name == "mcp.git.log"
    with pytest.raises(ResolveError):
        await late
    assert git.listings == 2


async def test_a_server_that_changes_with_every_listing_keeps_nobody_waiting_for_ever() -> None:
    git = Watchable("mcp_git", "mcp.git.log")
    catalog = Catalog([git])
    git.on_list = git.changed
    assert await names_of(catalog) == ["mcp.git.log"]
    assert await resolved(catalog, "mcp.git.log") == "mcp_git"
    assert git.listings == 2


# --- tasks


async def test_who_gives_up_takes_the_listing_from_nobody() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.shut()
    catalog = Catalog([git])
    one, other = started(catalog.tools()), started(resolved(catalog, "mcp.git.log"))
    await git.begun.wait()
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    git.open()
    assert await other == "mcp_git"
    assert git.listings == 1


async def test_a_listing_nobody_waits_for_any_more_is_not_lost() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.shut()
    catalog = Catalog([git])
    only = started(catalog.tools())
    await git.begun.wait()
    only.cancel()
    await asyncio.wait([only])
    git.open()
    assert await names_of(catalog) == ["mcp.git.log"]
    assert git.listings == 1


async def test_a_listing_sees_nothing_of_the_call_that_caused_it() -> None:
    caller: ContextVar[str] = ContextVar("caller", default="nobody")
    seen: list[str] = []
    git = Gated("mcp_git", "mcp.git.log")
    git.on_list = lambda: seen.append(caller.get())
    catalog = Catalog([git])
    caller.set("a job")
    await catalog.tools()
    assert seen == ["nobody"]


async def test_what_is_cancelled_inside_a_provider_is_its_failure_and_nobodys_cancellation() -> None:
    odd, good = Gated("mcp_odd"), Gated("mcp_good", "mcp.good.x")
    odd.error = asyncio.CancelledError("its own scope")
    catalog = Catalog([odd, good])
    assert await names_of(catalog) == ["mcp.good.x"]
    assert catalog.failures == {"mcp_odd": "CancelledError: its own scope"}


async def test_a_listing_cancelled_by_a_stranger_is_made_again_for_who_waits() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.shut()
    catalog = Catalog([git])
    call = started(resolved(catalog, "mcp.git.log"))
    await git.begun.wait()
    (listing,) = [task for task in asyncio.all_tasks() if task.get_name() == "remit:list:mcp_git"]
    listing.cancel()
    git.open()
    assert await call == "mcp_git"
    assert git.listings == 2


class Stop(BaseException):
    """Something no provider's failure can be made of."""


async def test_what_is_more_than_a_failure_reaches_who_waits_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.error = Stop()
    catalog = Catalog([git])
    with pytest.raises(Stop):
        await catalog.tools()
    assert "remit:list:mcp_git failed" in caplog.text
    git.error = None
    assert await names_of(catalog) == ["mcp.git.log"]


@pytest.mark.slow
async def test_what_nobody_waits_for_any_more_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    git = Gated("mcp_git")
    git.error = Stop()
    git.shut()
    catalog = Catalog([git])
    only = started(catalog.tools())
    await git.begun.wait()
    only.cancel()
    await asyncio.wait([only])
    git.open()
    await turns()
    del catalog
    gc.collect()
    assert [record.name for record in caplog.records] == ["remit.tools"]


async def test_levels_that_cannot_be_compared_are_the_failure_of_who_claims_them() -> None:
    odd, good = Gated("odd", "a.a"), Gated("good", "a.a")
    odd.changes = {"capability_level": "L0"}
    catalog = Catalog([odd, good], choose="safest")
    assert await resolved(catalog, "a.a") == "good"
    assert "ValueError" in catalog.failures["odd"]


async def test_a_long_list_lets_others_go_on_while_it_is_read() -> None:
    many = Gated("mcp_many", *(f"mcp.many.t{number}" for number in range(100)))
    catalog = Catalog([many])
    all_read = started(catalog.tools())
    await many.begun.wait()
    await turns(1)
    assert not all_read.done()
    assert catalog.listing == {"mcp_many"}
    assert len(await all_read) == 100


async def test_what_others_list_is_not_admitted_again() -> None:
    one, other = Gated("mcp_one", "mcp.one.x"), Gated("mcp_other", "mcp.other.x")
    catalog = Catalog([one, other])
    before = {tool.meta.name: tool for tool in await catalog.tools()}
    catalog.invalidate("mcp_one")
    after = {tool.meta.name: tool for tool in await catalog.tools()}
    assert after["mcp.other.x"] is before["mcp.other.x"]
    assert after["mcp.one.x"] is not before["mcp.one.x"]


# --- patience


async def test_with_patience_what_is_known_so_far_is_given() -> None:
    slow, git = Gated("mcp_slow", "mcp.slow.x"), Gated("mcp_git", "mcp.git.log")
    slow.shut()
    catalog = Catalog([slow, git])
    assert await resolved(catalog, "mcp.git.log") == "mcp_git"
    assert await names_of(catalog, 0) == ["mcp.git.log"]
    assert catalog.listing == {"mcp_slow"}
    with pytest.raises(ResolveError, match="the tools of mcp_slow are not known: they are being listed"):
        catalog.lookup("mcp.slow.x", {})
    slow.open()
    assert await names_of(catalog) == ["mcp.git.log", "mcp.slow.x"]
    assert catalog.listing == frozenset()
    assert slow.listings == 1


# --- closing


async def test_closing_ends_listings_before_providers_and_leaves_nobody_waiting() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.shut()
    catalog = Catalog([git])
    call = started(catalog.resolve("mcp.git.log", {}))
    await git.begun.wait()
    await catalog.close()
    assert git.diary == ["listing", "cancelled", "closed"]
    with pytest.raises(ResolveError, match="the tools of mcp_git are not known: ProviderClosed: the catalog is closed"):
        await call
    assert catalog.listing == frozenset()


async def test_a_closed_catalog_asks_no_provider_and_forgets_what_was_stale() -> None:
    git = Watchable("mcp_git", "mcp.git.log")
    catalog = Catalog([git])
    await catalog.tools()
    await catalog.close()
    assert await resolved(catalog, "mcp.git.log") == "mcp_git"
    git.changed()
    with pytest.raises(ResolveError):
        await catalog.resolve("mcp.git.log", {})
    assert git.listings == 1


async def test_a_provider_that_turns_its_cancellation_into_an_error_does_not_keep_the_catalog_open() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.shut()
    git.when_cancelled = ProviderError("given up", cause=Code.ProviderClosed)
    catalog = Catalog([git])
    call = started(catalog.tools())
    await git.begun.wait()
    await catalog.close()
    assert await call == []
    assert catalog.failures == {"mcp_git": "ProviderClosed: given up"}
