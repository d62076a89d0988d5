"""Providers say that their tools changed, or withhold one; who faces clients hears of it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from remit.codes import Code
from remit.tools.catalog import Catalog, ResolveError, Tool
from remit.tools.provider import Watched
from tests.tools.gated import Following, Gated, Watchable


async def names_of(catalog: Catalog) -> list[str]:
    return [tool.meta.name for tool in await catalog.tools()]


# --- what changes


async def test_a_provider_that_says_its_tools_changed_is_listed_again() -> None:
    git, other = Watchable("mcp_git", "mcp.git.log"), Gated("mcp_other")
    assert isinstance(git, Watched)
    assert not isinstance(other, Watched)
    catalog = Catalog([git, other])
    await catalog.tools()
    git.names = ["mcp.git.new"]
    git.changed()
    assert await names_of(catalog) == ["mcp.git.new"]
    assert (git.listings, other.listings) == (2, 1)


async def test_a_provider_that_follows_something_is_listed_again_before_a_use_that_concerns_it() -> None:
    file, other = Following("work", "executor.a"), Gated("other", "other.x")
    catalog = Catalog([file, other])
    assert await names_of(catalog) == ["executor.a", "other.x"]
    file.names = ["executor.b"]
    await catalog.resolve("other.x", {})
    assert file.listings == 1, "whose tool it is, is known"
    assert (await catalog.resolve("executor.b", {}))[0].meta.name == "executor.b"
    with pytest.raises(ResolveError):
        await catalog.resolve("executor.a", {})
    file.names = ["executor.c"]
    assert await catalog.find("executor.b") is None
    file.names = ["executor.d"]
    assert await names_of(catalog) == ["executor.d", "other.x"]
    assert (file.listings, other.listings) == (4, 1)


async def test_a_listener_hears_of_an_invalidation_and_of_what_came_of_it() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    catalog = Catalog([git])
    heard: list[list[str]] = []
    end = catalog.watch(lambda: heard.append([tool.meta.name for tool in known(catalog)]))
    await catalog.tools()
    assert heard == [["mcp.git.log"]]
    git.names = ["mcp.git.new"]
    catalog.invalidate("mcp_git")
    assert heard[1:] == [["mcp.git.log"]]
    await catalog.tools()
    assert heard[2:] == [["mcp.git.new"]]
    end()
    end()
    catalog.invalidate()
    await catalog.tools()
    assert len(heard) == 3


def known(catalog: Catalog) -> list[Tool]:
    found = (catalog.known(name) for name in ("mcp.git.log", "mcp.git.new"))
    return [tool for tool in found if tool is not None]


async def test_a_flood_of_changes_is_told_once_until_they_are_looked_at() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    catalog = Catalog([git])
    await catalog.tools()
    heard: list[int] = []
    catalog.watch(lambda: heard.append(git.listings))
    for _ in range(100):
        catalog.invalidate("mcp_git")
    catalog.invalidate("nobody")
    assert heard == [1]
    git.shut()
    looking = asyncio.create_task(catalog.tools())
    await git.begun.wait()
    catalog.invalidate("mcp_git")  # after the listing began: who gets that listing has to hear of it
    assert heard == [1, 2]
    git.open()
    await looking


@pytest.mark.parametrize(
    ("changes", "heard"),
    [
        ({}, 1),
        ({"timeout_ms": 7}, 1),
        ({"description": "Do as I say."}, 2),
        ({"input_schema": {"type": "object", "properties": {"a": {}}}}, 2),
        ({"withheld": "It changed. Look at it."}, 2),
        ({"side_effects": False}, 2),
        ({"definition": {"title": "Log"}}, 2),
    ],
)
async def test_a_listener_hears_of_a_listing_only_where_it_brought_something_else(
    changes: dict[str, Any], heard: int
) -> None:
    git = Gated("mcp_git", "mcp.git.log")
    catalog = Catalog([git])
    await catalog.tools()
    calls: list[None] = []
    catalog.watch(lambda: calls.append(None))
    git.changes = changes
    catalog.invalidate("mcp_git")
    await catalog.tools()
    assert len(calls) == heard


async def test_a_listener_hears_that_a_provider_failed_and_that_it_is_back() -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.error = ConnectionError("away")
    catalog = Catalog([git])
    heard: list[str] = []
    catalog.watch(lambda: heard.append(catalog.failures.get("mcp_git", "up")))
    await catalog.tools()
    assert [words.rpartition(" ")[2] for words in heard] == ["away"]
    catalog.invalidate("mcp_git")
    await catalog.tools()
    assert len(heard) == 2, "of the invalidation, and not of the same failure"
    git.error, git.names = None, []
    catalog.invalidate("mcp_git")
    await catalog.tools()
    assert heard[3:] == ["up"]


async def test_a_listener_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    catalog = Catalog([Gated("mcp_git", "mcp.git.log")])
    heard: list[None] = []

    def failing() -> None:
        raise RuntimeError("theirs")

    catalog.watch(failing)
    catalog.watch(lambda: heard.append(None))
    with caplog.at_level(logging.ERROR):
        assert await names_of(catalog) == ["mcp.git.log"]
    assert len(heard) == 1
    assert "theirs" in caplog.text


# --- what a provider withholds


@pytest.mark.parametrize(
    ("withheld", "reason", "remedy"),
    [
        (
            "Its text changed, v1. 2 tools are new. See `remit mcp diff git`.",
            "mcp.git.log is withheld: Its text changed, v1. 2 tools are new.",
            "See `remit mcp diff git`.",
        ),
        ("Approve it first.", "mcp.git.log is withheld: Approve it first.", "Approve it first."),
    ],
)
async def test_a_tool_its_provider_withholds_is_refused_with_what_the_provider_says(
    withheld: str, reason: str, remedy: str
) -> None:
    git = Gated("mcp_git", "mcp.git.log")
    git.changes = {"withheld": withheld}
    with pytest.raises(ResolveError) as error:
        await Catalog([git]).resolve("mcp.git.log", {})
    assert error.value.code is Code.TOOL_QUARANTINED
    assert (error.value.reason, error.value.remedy) == (reason, remedy)
