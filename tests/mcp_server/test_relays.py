"""What many servers offer beside their tools, at one face: whose it is, under which name, and who sees it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from remit import Remit
from remit.http.access import SCOPES, Access
from remit.http.guard import Token, digest_of
from remit.jsonrpc.protocol import TASKS
from remit.mcp_server.offer import Viewer, Views, WireNames
from remit.mcp_server.relays import Relays
from remit.mcp_server.server import ToolServer
from tests.mcp_server.links import LINKS, Link, at, facing, raw, serving
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

SERVER: Final = Path(__file__).parent / "servers" / "shelf.py"
ON_LINES: Final = LINKS[0]
UI: Final = "io.modelcontextprotocol/ui"


@asynccontextmanager
async def shelves(
    remit_in: OpenRemit, *names: str, instructions: int = 2_000, rules: Any = ()
) -> AsyncIterator[tuple[Remit, ToolServer]]:
    """A Remit in front of servers of these names, as `remit mcp serve` is; that named `gone` does not start."""
    command = [sys.executable, "-I", "-S", str(SERVER)]
    tables = [
        {"name": name, "command": ["false"] if name == "gone" else [*command, name], "level": "L0"} for name in names
    ]
    async with remit_in(flags={"mcp.servers": tables, "policy.rules": list(rules)}) as remit:
        relays = Relays(
            remit.service.servers, remit.service.sessions, instructions=instructions, handshake_s=PATIENCE_S
        )
        async with facing(remit, relay=relays) as face:
            yield remit, face


async def introduction(client: Client, link: Link) -> dict[str, Any]:
    """The answer to the handshake of the client's era."""
    if link.modern:
        return await raw(client, "server/discover", {})
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    return await raw(client, "initialize", asked)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
async def test_each_server_has_its_heading_in_the_instructions_and_its_extensions(
    remit_in: OpenRemit, link: Link
) -> None:
    async with shelves(remit_in, "ann", "bob") as (_, face), link.connect(face) as client:
        said = await introduction(client, link)
    text = said["instructions"]
    assert text.startswith("## ann\n\nann: first read, then write.\n\n## bob\n\nbob: first read, then write.\n\nEvery")
    offered = said["capabilities"]
    assert set(offered) - {"tasks"} == {"tools", "prompts", "resources", "completions", "extensions"}
    assert offered["extensions"] == {UI: {}, **({TASKS: {}} if link.modern else {})}


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
async def test_prompts_are_prefixed_and_lead_back(remit_in: OpenRemit, link: Link) -> None:
    async with shelves(remit_in, "ann", "bob") as (_, face), link.connect(face) as client:
        listed = await raw(client, "prompts/list", {})
        assert [each["name"] for each in listed["prompts"]] == [
            "mcp__ann__greet",
            "mcp__ann__part__two",
            "mcp__bob__greet",
            "mcp__bob__part__two",
        ]
        for name, text in (("mcp__bob__greet", "bob greet"), ("mcp__ann__part__two", "ann part__two")):
            got = await raw(client, "prompts/get", {"name": name})
            assert got["messages"][0]["content"]["text"] == text
        for name in ("greet", "mcp__eve__greet", "mcp__ann__"):
            with pytest.raises(MCPError, match="Unknown prompt"):
                await raw(client, "prompts/get", {"name": name})


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
async def test_uris_lead_back_to_their_server_before_and_after_a_list(remit_in: OpenRemit, link: Link) -> None:
    async with shelves(remit_in, "ann", "bob") as (_, face), link.connect(face) as client:
        for uri in ("page://bob/7", "ui://bob/page", "memo://bob"):
            read = await raw(client, "resources/read", {"uri": uri})
            assert read["contents"][0]["text"] == f"bob has {uri}"
        listed = await raw(client, "resources/list", {})
        assert [each["uri"] for each in listed["resources"]] == ["memo://ann", "memo://both", "memo://bob"]
        both = await raw(client, "resources/read", {"uri": "memo://both"})
        assert both["contents"][0]["text"] == "ann has memo://both"
        templates = await raw(client, "resources/templates/list", {})
        assert [each["uriTemplate"] for each in templates["resourceTemplates"]] == ["page://ann/{n}", "page://bob/{n}"]
        with pytest.raises(MCPError, match="Resource not found") as caught:
            await raw(client, "resources/read", {"uri": "file:///etc/passwd"})
        assert caught.value.code == -32002


async def test_a_completion_goes_to_the_server_of_its_prompt_or_resource(remit_in: OpenRemit) -> None:
    async with shelves(remit_in, "ann", "bob") as (_, face), ON_LINES.connect(face) as client:
        argument = {"name": "n", "value": ""}
        for ref, own in (
            ({"type": "ref/prompt", "name": "mcp__bob__greet"}, '{"type": "ref/prompt", "name": "greet"}'),
            ({"type": "ref/resource", "uri": "page://bob/{n}"}, '{"type": "ref/resource", "uri": "page://bob/{n}"}'),
        ):
            done = await raw(client, "completion/complete", {"ref": ref, "argument": argument})
            assert done["completion"]["values"] == ["bob", own]


async def test_a_changed_resource_is_told_to_whom_it_belongs(remit_in: OpenRemit) -> None:
    told: dict[str, asyncio.Queue[str]] = {"one": asyncio.Queue(), "two": asyncio.Queue()}

    def hear(name: str) -> Any:
        async def heard(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/resources/updated":
                told[name].put_nowait(str(message.params.uri))

        return heard

    async with shelves(remit_in, "ann") as (_, face):
        person = [Token(digest_of("t"), Access(principal="p", scopes=SCOPES))]
        async with (
            serving(face, clients=person) as url,
            at(url, token="t", mode="legacy", cache=None, message_handler=hear("one")) as one,
            at(url, token="t", mode="legacy", cache=None, message_handler=hear("two")) as two,
        ):
            await raw(two, "resources/subscribe", {"uri": "memo://both"})
            async with asyncio.timeout(PATIENCE_S):
                assert await told["two"].get() == "memo://both"
            await raw(one, "resources/subscribe", {"uri": "memo://ann"})
            async with asyncio.timeout(PATIENCE_S):
                assert await told["one"].get() == "memo://ann"
            await raw(two, "prompts/list", {})  # what was sent to it before has arrived as well
            assert told["two"].empty()


async def test_what_a_client_s_token_or_policy_keeps_from_it_is_not_shown_to_it(remit_in: OpenRemit) -> None:
    rule = {"id": "no-bob", "effect": "deny", "tools": ["mcp.bob.*"], "callers": ["mcp:q"]}
    async with shelves(remit_in, "ann", "bob", rules=[rule]) as (_, face):
        tokens = [
            Token(digest_of("p"), Access(principal="p", scopes=SCOPES, tools=("mcp.ann.*",))),
            Token(digest_of("q"), Access(principal="q", scopes=SCOPES)),
        ]
        async with serving(face, clients=tokens) as url:
            for token in ("p", "q"):
                async with at(url, token=token, mode="legacy", cache=None) as client:
                    listed = await raw(client, "resources/list", {})
                    assert [each["uri"] for each in listed["resources"]] == ["memo://ann", "memo://both"]
                    said = await introduction(client, ON_LINES)
                    assert "## bob" not in said["instructions"]
                    for uri in ("memo://bob", "ui://bob/page"):
                        with pytest.raises(MCPError, match="ann has no such"):  # the only one that has such URIs
                            await raw(client, "resources/read", {"uri": uri})


async def test_a_server_that_does_not_start_takes_nothing_from_the_others(remit_in: OpenRemit) -> None:
    async with shelves(remit_in, "ann", "bob") as (remit, face):
        bob: Any = remit.service.servers.remote("bob")
        await bob.close()
        async with ON_LINES.connect(face) as client:
            listed = await raw(client, "prompts/list", {})
            assert [each["name"] for each in listed["prompts"]] == ["mcp__ann__greet", "mcp__ann__part__two"]


async def test_of_a_server_that_was_never_there_everything_is_kept_open(remit_in: OpenRemit) -> None:
    async with shelves(remit_in, "ann", "gone") as (_, face), ON_LINES.connect(face) as client:
        said = await introduction(client, ON_LINES)
        assert "## ann" in said["instructions"]
        assert "logging" in said["capabilities"]  # it may have it, once it is there
        with pytest.raises(MCPError, match="Unknown prompt"):
            await raw(client, "prompts/get", {"name": "mcp__gone__greet"})


async def test_a_server_is_not_shown_before_its_tools_are_known(remit_in: OpenRemit) -> None:
    async with shelves(remit_in, "ann") as (remit, _):
        views = Views(remit.service.tools, WireNames())
        early = await views.seen(Viewer("p"), 0)
        assert early("ann") is None
        late = await views.seen(Viewer("p"), PATIENCE_S)
        assert late("ann") is True
        assert late("other") is True  # of a server without tools, nothing is kept from a token for all


@pytest.mark.parametrize(("limit", "shown"), [(0, ""), (10, "## ann\n\nann: first …\n\n")])
async def test_instructions_are_cut_as_the_setting_says(remit_in: OpenRemit, limit: int, shown: str) -> None:
    async with shelves(remit_in, "ann", instructions=limit) as (_, face), ON_LINES.connect(face) as client:
        said = await introduction(client, ON_LINES)
        assert said["instructions"].partition("Every call")[0] == shown
