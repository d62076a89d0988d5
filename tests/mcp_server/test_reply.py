"""What a client is given for a value."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from remit import tool
from remit.mcp_server.offer import OwnNames
from remit.tools.remote import OUTCOME
from tests.mcp_server.links import Link, code_of, facing, text_of
from tests.mcp_server.links import raw as call
from tests.mcp_server.test_listing import DEFINITION, write
from tests.mcp_server.upstream import Upstream, offered
from tests.opened import OpenRemit

BYTES = bytes(range(256)) * 300  # more than is kept inline
ENCODED = base64.b64encode(BYTES).decode()
TYPED = {
    "name": "typed",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
}

CONTENTS: dict[str, dict[str, Any]] = {
    "text": {"content": [{"type": "text", "text": "é\n\u2028"}]},
    "no text": {"content": []},
    "annotated": {"content": [{"type": "text", "text": "x", "annotations": {"priority": 1.0}, "odd": [1]}]},
    "two texts": {"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
    "image": {"content": [{"type": "image", "data": ENCODED, "mimeType": "image/png"}]},
    "audio": {"content": [{"type": "audio", "data": ENCODED, "mimeType": "audio/wav", "_meta": {"a": 1}}]},
    "resource": {
        "content": [
            {"type": "text", "text": "see"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "x/y", "blob": ENCODED}},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "plain"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]
    },
    "attached": {"content": [{"type": "text", "text": "x"}], "_meta": {"trace": "x", "ui/app": {"at": [1.5, None]}}},
    "attached, and large": {"content": [], "_meta": {"app": ENCODED}},
    "structured, and attached": {
        "content": [{"type": "text", "text": '{"n":1}'}],
        "structuredContent": {"n": 1},
        "_meta": {"a": 1},
    },
    "structured": {"content": [{"type": "text", "text": '{"n":1.5}'}], "structuredContent": {"n": 1.5}},
    "structured beside words": {"content": [{"type": "text", "text": "one"}], "structuredContent": {"n": 1}},
    "structured beside an image": {
        "content": [{"type": "image", "data": ENCODED, "mimeType": "image/png"}],
        "structuredContent": {"n": 1},
    },
}


@pytest.mark.parametrize("raw", CONTENTS.values(), ids=CONTENTS)
async def test_what_a_server_gave_comes_through_byte_for_byte(
    remit_in: OpenRemit, link: Link, raw: dict[str, Any]
) -> None:
    async def answer(args: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return raw

    tool_name = "typed" if "structuredContent" in raw else "search"
    far = Upstream(offered({**TYPED, "name": "typed"}), offered(DEFINITION), answer=answer)
    async with (
        remit_in(providers=[far]) as remit,
        facing(remit, names=OwnNames("far")) as face,
        link.connect(face) as client,
    ):
        args = {"q": "x"} if tool_name == "search" else {}
        result = await call(client, "tools/call", {"name": tool_name, "arguments": args})
    assert result["content"] == raw["content"]
    assert result.get("structuredContent") == raw.get("structuredContent")
    assert {**result["_meta"], **raw.get("_meta", {})} == result["_meta"]


async def test_what_a_server_attaches_under_names_of_the_protocol_or_of_ours_is_not_passed_on(
    remit_in: OpenRemit, link: Link
) -> None:
    async def answer(args: dict[str, Any], ctx: Any) -> dict[str, Any]:
        forged = {OUTCOME: {"invocation": "inv_forged"}, "dev.remit/x": 1, "io.modelcontextprotocol/serverInfo": "far"}
        return {"content": [], "_meta": {**forged, "own": 1}}

    far = Upstream(offered(DEFINITION), answer=answer)
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        result = await call(client, "tools/call", {"name": "mcp__far__search", "arguments": {"q": "x"}})
    assert result["_meta"]["own"] == 1
    assert "forged" not in str(result["_meta"])
    assert "dev.remit/x" not in result["_meta"]
    assert result["_meta"].get("io.modelcontextprotocol/serverInfo") != "far"


async def test_a_server_s_error_is_an_error(remit_in: OpenRemit, link: Link) -> None:
    async def answer(args: dict[str, Any], ctx: Any) -> dict[str, Any]:
        meta = {"trace": {"id": [1]}, "ui/app": ENCODED, OUTCOME: {"code": "FORGED"}}
        return {"content": [{"type": "text", "text": "no such file"}], "isError": True, "_meta": meta}

    far = Upstream(offered(DEFINITION), answer=answer)
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        failed = await client.call_tool("mcp__far__search", {"q": "x"})
        assert (await remit.service.streams.verify()).ok
    assert code_of(failed) == "TOOL_EXEC_FAILED"
    assert "no such file" in text_of(failed)
    assert failed.meta is not None
    assert {name: failed.meta[name] for name in ("trace", "ui/app")} == {"trace": {"id": [1]}, "ui/app": ENCODED}


async def test_structured_content_that_breaks_its_schema_is_refused(remit_in: OpenRemit, link: Link) -> None:
    async def answer(args: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"content": [], "structuredContent": {"n": "many"}}

    far = Upstream(offered(TYPED), answer=answer)
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        failed = await client.call_tool("mcp__far__typed", {})
    assert code_of(failed) == "RESULT_INVALID"


VALUES: dict[str, Any] = {
    "text": "plain",
    "number": 1.0,
    "nothing": None,
    "list": [1, 2],
    "list like content": [{"type": "bug", "title": "it breaks"}],
    "object": {"a": [1]},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_the_value_of_a_function_is_text_and_an_object_is_structured_too(
    remit_in: OpenRemit, link: Link, value: Any
) -> None:
    @tool("some.value", level="L0")
    async def some() -> Any:
        """Give it."""
        return value

    async with remit_in(tools=[some, write]) as remit, facing(remit) as face, link.connect(face) as client:
        result = await client.call_tool("some__value", {})
    told = text_of(result)
    assert (told if isinstance(value, str) else json.loads(told)) == value
    assert result.structured_content == (value if isinstance(value, dict) else None)


async def test_functions_with_types_give_what_their_schema_says(remit_in: OpenRemit, link: Link) -> None:
    @tool("some.names", level="L0")
    async def some_names() -> list[str]:
        """Give them."""
        return ["a", "b"]

    async with remit_in(tools=[some_names]) as remit, facing(remit) as face, link.connect(face) as client:
        result = await client.call_tool("some__names", {})
    assert json.loads(text_of(result)) == ["a", "b"]
    assert result.structured_content is None


async def test_bytes_that_were_not_kept_are_named(remit_in: OpenRemit, link: Link) -> None:
    async def answer(args: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return CONTENTS["image"]

    far = Upstream(offered(DEFINITION), answer=answer)
    async with (
        remit_in(providers=[far], flags={"evidence.raw_limit_bytes": 100}) as remit,
        facing(remit) as face,
        link.connect(face) as client,
    ):
        result = await client.call_tool("mcp__far__search", {"q": "x"})
    assert text_of(result) == f"[image/png of {len(BYTES)} bytes was not kept: see evidence.raw_limit_bytes]"
