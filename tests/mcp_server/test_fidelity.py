"""What arrives at a client through Remit, field by field against what the server said: kinds of messages as a table.

The server behind is on stdio and without an SDK: it answers with what the client asks it for.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp.shared.exceptions import MCPError

from remit import Remit
from remit.journal.event import HeadQuery
from remit.journal.kinds import ToolInvocationStarted, decode
from remit.jsonrpc.protocol import TASKS
from remit.mcp_server.offer import OwnNames
from remit.mcp_server.relay import Relay
from remit.mcp_server.server import ToolServer
from remit.tools.remote import OUTCOME
from tests.mcp_server.links import LINKS, Link, facing, raw
from tests.opened import OpenRemit

SERVER: Final = Path(__file__).parent / "servers" / "full.py"
"""As a process on stdio, and over HTTP, in both eras."""
PNG: Final = base64.b64encode(b"\x89PNG" + bytes(range(256)) * 8_000).decode()
"""More than evidence keeps by default."""
TRACEBACK: Final = 'line one\n  File "a.py", line 3\n    x = \n        ^\nSyntaxError: bad\tthing SECRET_SANTA=anna'

INTRODUCTION: Final[dict[str, Any]] = {
    "serverInfo": {
        "name": "full",
        "title": "Full Server",
        "version": "9.9",
        "description": "All of it.",
        "websiteUrl": "https://full.example",
        "icons": [{"src": "https://full.example/icon.png", "sizes": ["48x48"]}],
    },
    "capabilities": {
        "tools": {},
        "prompts": {},
        "resources": {},
        "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}},
        "experimental": {"acme/beta": {"level": 2}},
    },
    "instructions": "First read, then write.",
}
"""As the server gives it."""
RESULTS: Final[dict[str, dict[str, Any]]] = {
    "a text": {"content": [{"type": "text", "text": "é\n\u2028"}]},
    "nothing": {"content": []},
    "pretty JSON beside its structure": {
        "content": [{"type": "text", "text": '{\n  "n": 1\n}'}],
        "structuredContent": {"n": 1},
    },
    "a structure alone": {"content": [], "structuredContent": {"n": 1}},
    "a large image": {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
    "a large text beside a structure": {
        "content": [{"type": "text", "text": "x" * 2_000_000}],
        "structuredContent": {"n": 1},
    },
    "a file": {
        "content": [
            {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": PNG}}
        ]
    },
    "attachments": {"content": [{"type": "text", "text": "x", "_meta": {"a": 1}}], "_meta": {"ui/app": {"at": [1.5]}}},
    "an error": {"content": [{"type": "text", "text": TRACEBACK}], "isError": True},
    "a long error": {"content": [{"type": "text", "text": "e" * 5_000}], "isError": True},
    "an error with an image, a structure and attachments": {
        "content": [{"type": "text", "text": "no"}, {"type": "image", "data": PNG, "mimeType": "image/png"}],
        "structuredContent": {"why": ["x", 1]},
        "_meta": {"trace": "t"},
        "isError": True,
    },
    "an empty error": {"content": [], "isError": True},
}


@asynccontextmanager
async def wrapped(remit_in: OpenRemit, **flags: Any) -> AsyncIterator[tuple[Remit, ToolServer]]:
    """A Remit in front of the server, as `remit mcp wrap` is."""
    table = {"name": "full", "command": [sys.executable, "-I", "-S", str(SERVER)], "level": "L0", **flags}
    async with remit_in(flags={"mcp.servers": [table]}) as remit:
        servers = remit.service.servers
        relay = Relay(servers.remote("full"), remit.service.sessions, await servers.status("full"))
        async with facing(remit, names=OwnNames("full"), relay=relay) as face:
            yield remit, face


def said(result: dict[str, Any]) -> dict[str, Any]:
    """A result without what Remit and the era put into it."""
    meta = {key: value for key, value in result.get("_meta", {}).items() if not key.startswith(("dev.remit/", "io."))}
    rest = {key: value for key, value in result.items() if key not in {"_meta", "resultType"}}
    return {**rest, **({"_meta": meta} if meta else {})}


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
@pytest.mark.parametrize("kind", RESULTS)
async def test_a_result_arrives_as_the_server_gave_it(remit_in: OpenRemit, link: Link, kind: str) -> None:
    async with wrapped(remit_in) as (_, face), link.connect(face) as client:
        result = await raw(client, "tools/call", {"name": "say", "arguments": {"result": RESULTS[kind]}})
    assert said(result) == {"isError": False, **RESULTS[kind]}
    assert bool(result["_meta"][OUTCOME].get("code")) is RESULTS[kind].get("isError", False)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
async def test_an_error_of_json_rpc_arrives_as_the_server_gave_it(remit_in: OpenRemit, link: Link) -> None:
    error = {"code": -32050, "message": "quota: used up", "data": {"left": 0, "until": None}}
    async with wrapped(remit_in) as (_, face), link.connect(face) as client:
        with pytest.raises(MCPError) as caught:
            await raw(client, "tools/call", {"name": "say", "arguments": {"error": error}})
    assert (caught.value.code, caught.value.message) == (error["code"], error["message"])
    assert caught.value.data == error["data"]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
async def test_what_a_server_does_not_offer_it_refuses_in_its_own_words(remit_in: OpenRemit, link: Link) -> None:
    ref = {"type": "ref/prompt", "name": "greet"}
    async with wrapped(remit_in) as (_, face), link.connect(face) as client:
        with pytest.raises(MCPError) as caught:
            await raw(client, "completion/complete", {"ref": ref, "argument": {"name": "city", "value": "U"}})
    assert (caught.value.code, caught.value.message) == (-32601, "unknown method completion/complete")
    assert caught.value.data is None


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
async def test_what_a_client_attaches_reaches_the_server_and_its_trace_goes_on(remit_in: OpenRemit, link: Link) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    own = {
        "com.acme/tenant": {"id": [7]},
        "traceparent": f"00-{trace}-b7ad6b7169203331-01",
        "tracestate": "acme=1",
        "baggage": "user=ann",
        "claudecode/toolUseId": "toolu_1",
        "dev.remit/outcome": "forged",
    }
    async with wrapped(remit_in) as (remit, face), link.connect(face) as client:
        result = await raw(client, "tools/call", {"name": "hear", "arguments": {}, "_meta": own})
        heard = json.loads(result["content"][0]["text"])
        journal = remit.runtime.journal
        (head,) = await journal.heads(HeadQuery(kind="session"))
        read = [decode(event.kind, event.data) for event in await journal.read(head.stream)]
    (started,) = [event for event in read if isinstance(event, ToolInvocationStarted)]
    assert {key: heard[key] for key in ("com.acme/tenant", "tracestate", "baggage", "claudecode/toolUseId")} == {
        key: own[key] for key in ("com.acme/tenant", "tracestate", "baggage", "claudecode/toolUseId")
    }
    assert heard["traceparent"] == f"00-{trace}-{started.span_id}-01"
    assert "dev.remit/outcome" not in heard
    assert started.trace_id == trace
    assert started.client["claudecode/toolUseId"] == "toolu_1"
    assert started.client["baggage"] == "user=ann"


@pytest.mark.parametrize("strict", [False, True])
async def test_arguments_that_a_schema_does_not_declare_reach_the_server_unless_it_is_strict(
    remit_in: OpenRemit, strict: bool
) -> None:
    args = {"n": 1, "more": ["x"]}
    async with wrapped(remit_in, strict=strict) as (_, face), Link("lines", "legacy").connect(face) as client:
        result = await raw(client, "tools/call", {"name": "typed", "arguments": args})
    (block,) = result["content"]
    assert result["isError"] is strict
    assert ("more is not a known field" in block["text"]) if strict else json.loads(block["text"]) == args


async def test_what_the_record_says_of_an_error_is_one_masked_line(remit_in: OpenRemit) -> None:
    async with wrapped(remit_in) as (remit, face), Link("lines", "legacy").connect(face) as client:
        await raw(client, "tools/call", {"name": "say", "arguments": {"result": RESULTS["an error"]}})
        (row,) = await remit.service.sessions.rows()
        (step,) = (await remit.service.streams.narrative(row.session)).steps
    assert "\n" not in step.reason
    assert "anna" not in step.reason
    assert "will fail again" not in step.remedy


async def test_a_remedy_for_a_model_names_no_command(remit_in: OpenRemit) -> None:
    async with wrapped(remit_in) as (_, face), Link("lines", "legacy").connect(face) as client:
        result = await raw(client, "tools/call", {"name": "typed", "arguments": {}})
    assert result["isError"]
    (block,) = result["content"]
    assert "remit " not in block["text"]
    assert "input schema" in block["text"]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.transport}-{link.era}")
async def test_a_wrapped_server_introduces_itself(remit_in: OpenRemit, link: Link) -> None:
    async with wrapped(remit_in) as (_, face), link.connect(face) as client:
        introduction = INTRODUCTION
        if link.modern:
            told = await raw(client, "server/discover", {})
            info = told["_meta"]["io.modelcontextprotocol/serverInfo"]
            listed = await raw(client, "tools/list", {})
            assert listed["_meta"]["io.modelcontextprotocol/serverInfo"] == introduction["serverInfo"]
        else:
            asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            told = await raw(client, "initialize", asked)
            info = told["serverInfo"]
    assert info == introduction["serverInfo"]
    ours: dict[str, Any] = {TASKS: {}} if link.modern else {}
    extensions = {**introduction["capabilities"]["extensions"], **ours}
    assert told["capabilities"] == {**introduction["capabilities"], "extensions": extensions}
    assert told["instructions"].startswith(introduction["instructions"] + "\n\nEvery call is checked")
