"""Clients that find tools by a search: what they list, what they find, and that a call is one of the real tool."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from remit.http.access import SCOPES, Access
from remit.http.guard import Token, digest_of
from remit.mcp_server.offer import OwnNames
from remit.mcp_server.request import AskingTerms
from remit.mcp_server.search import ToolIndex
from remit.mcp_server.server import ToolServer
from tests.mcp_server.catalog import QUESTIONS, definitions
from tests.mcp_server.links import MODERN, Link, at, code_of, facing, kinds, raw, serving, text_of
from tests.mcp_server.test_confirmation import Notes, Person, said
from tests.mcp_server.test_listing import echo, names
from tests.mcp_server.upstream import Upstream, offered
from tests.opened import OpenRemit

SEARCH = AskingTerms(expose_tools="search")
OURS = ["tools__search", "tools__call"]


@pytest.fixture
def notes() -> Notes:
    return Notes()


async def found(client: Any, query: str, **given: Any) -> list[dict[str, Any]]:
    """The tools that a search finds."""
    result = await client.call_tool("tools__search", {"query": query, **given})
    assert not result.is_error
    tools: list[dict[str, Any]] = json.loads(text_of(result))["tools"]
    return tools


async def call(client: Any, name: str, **arguments: Any) -> Any:
    return await client.call_tool("tools__call", {"name": name, "arguments": arguments})


def test_the_right_tool_of_400_is_among_the_first_five_for_45_of_50_questions() -> None:
    catalog = [{**each, "name": f"mcp__{each['name'].replace('.', '__')}"} for each in definitions(400)]
    index = ToolIndex(catalog)
    missed = []
    for question, tool in QUESTIONS:
        best = [each["name"] for each in index.best(question, 5)]
        assert len(best) <= 5
        if f"mcp__{tool.replace('.', '__')}" not in best:
            missed.append(question)
    assert (len(catalog), len(QUESTIONS)) == (400, 50)
    assert len(missed) <= 5, missed


@pytest.mark.parametrize("query", ["", '"', "NOT OR AND *", "name:x", "the of", "日本", "x" * 1_000, "a_b " * 200])
def test_any_text_can_be_searched_for(query: str) -> None:
    assert len(ToolIndex(definitions(40)).best(query, 3)) <= 3


async def test_430_tools_cost_a_client_under_2000_tokens(remit_in: OpenRemit) -> None:
    far = Upstream(*(offered({**each, "name": each["name"].replace(".", "-")}) for each in definitions(430)))
    async with remit_in(providers=[far]) as remit, facing(remit, terms=SEARCH) as face:
        async with Link("lines", "legacy").connect(face) as client:
            listed = await raw(client, "tools/list", {})
            assert "far" in listed["tools"][0]["description"]
            told = await found(client, "publish a release with notes on GitHub")
        whole = sum(len(json.dumps(each)) for each in definitions(430))
    assert len(json.dumps(listed)) / 4 < 2_000
    assert whole / 4 > 30_000  # what it costs otherwise
    (release,) = [each for each in told if each["name"] == "mcp__far__github-create_release"]
    assert release["inputSchema"]["required"] == ["owner", "repo"]


async def test_two_tools_are_listed_that_find_and_call_the_others(remit_in: OpenRemit, link: Link) -> None:
    async with remit_in(tools=[echo]) as remit, facing(remit, terms=SEARCH) as face, link.connect(face) as client:
        assert await names(client) == OURS
        (tool,) = await found(client, "give the text back", limit=1)
        assert tool["name"] == "text__echo"
        assert tool["inputSchema"] == echo.meta.input_schema
        assert text_of(await call(client, "text__echo", text="hi")) == "hi"
        assert await kinds(remit) == ["session_opened", "tool_invocation_started", "tool_invocation_finished"]
        assert await found(client, "zebra") == []


async def test_a_call_is_asked_about_approved_and_run_once_as_one_of_the_real_tool(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    person = Person(said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=SEARCH) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        result = await call(client, "note__write", text="buy milk")
        assert result.structured_content == {"notes": 1}
        assert "May note.write run with these arguments?" in person.asked[0]
    assert notes.written == ["buy milk"]


async def test_what_was_approved_elsewhere_runs_once_by_either_way(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=SEARCH) as face,
        link.connect(face) as client,
    ):
        assert code_of(await call(client, "note__write", text="x")) == "CONFIRMATION_REQUIRED"
        (question,) = await remit.service.confirmations.pending()
        assert question.tool == "note.write"
        await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        assert not (await client.call_tool("note__write", {"text": "x"})).is_error
        assert code_of(await call(client, "note__write", text="x")) == "CONFIRMATION_REQUIRED"
    assert notes.written == ["x"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "text"),
    [
        ("tools__search", {}, "INVALID_TOOL_ARGS", "query"),
        ("tools__search", {"query": ""}, "INVALID_TOOL_ARGS", "length >= 1"),
        ("tools__search", {"query": "x", "limit": 21}, "INVALID_TOOL_ARGS", "<= 20"),
        ("tools__search", {"query": "x", "more": 1}, "INVALID_TOOL_ARGS", "more"),
        ("tools__call", {"arguments": {}}, "INVALID_TOOL_ARGS", "name"),
        ("tools__call", {"name": "text__echo", "arguments": "{}"}, "INVALID_TOOL_ARGS", "Expected `object`"),
        ("tools__call", {"name": "text__echo", "arguments": {}}, "INVALID_TOOL_ARGS", "text"),
        ("tools__call", {"name": "text__ecco"}, "UNKNOWN_TOOL", "Find its name with tools__search"),
        ("tools__call", {"name": "tools__call"}, "UNKNOWN_TOOL", "there is no tool tools__call"),
    ],
)
async def test_a_wrong_request_is_told_what_to_correct(
    remit_in: OpenRemit, tool: str, arguments: dict[str, Any], code: str, text: str
) -> None:
    async with remit_in(tools=[echo]) as remit, facing(remit, terms=SEARCH) as face:
        for era in ("legacy", MODERN):
            async with Link("lines", era).connect(face) as client:
                refused = await client.call_tool(tool, arguments)
            assert code_of(refused) == code
            assert text in text_of(refused)


async def test_a_wrapped_server_s_tools_are_found_under_their_own_names(remit_in: OpenRemit, link: Link) -> None:
    ours = offered({"name": "tools__call", "inputSchema": {"type": "object"}})
    far = Upstream(
        offered({"name": "read_file", "inputSchema": {"type": "object"}}),
        msgspec.structs.replace(ours, name="mcp.far.tools-call"),
    )
    terms = AskingTerms(expose_tools="search", always=("read_*", "tools__call"))
    async with (
        remit_in(tools=[echo], providers=[far]) as remit,
        facing(remit, names=OwnNames("far"), terms=terms) as face,
        link.connect(face) as client,
    ):
        assert await names(client) == [*OURS, "read_file"]
        (tool,) = await found(client, "tools call")
        assert tool["name"] == "tools__call"
        assert text_of(await call(client, "tools__call")) == "far"
        assert code_of(await call(client, "text__echo", text="x")) == "UNKNOWN_TOOL"
    assert far.calls == [("mcp.far.tools-call", {})]


async def test_each_client_lists_as_its_table_says_and_finds_only_what_it_may_see(remit_in: OpenRemit) -> None:
    notes = Notes()
    clients = [
        Token(digest_of("some"), Access("ann", SCOPES, ("text.*",), expose_tools="search")),
        Token(digest_of("shelf"), Access("bob", SCOPES, expose_tools="search", always=("note.*",))),
        Token(digest_of("whole"), Access("eve", SCOPES, ("text.*",), expose_tools="all")),
    ]
    async with (
        remit_in(tools=[echo, notes.tool]) as remit,
        facing(remit, terms=SEARCH) as face,
        serving(face, clients=clients) as url,
    ):
        for era in ("legacy", MODERN):
            async with at(url, token="some", mode=era, cache=None) as client:
                assert await names(client) == OURS
                assert [each["name"] for each in await found(client, "write or echo a text note")] == ["text__echo"]
                assert code_of(await call(client, "note__write", text="x")) == "POLICY_DENIED"
            async with at(url, token="shelf", mode=era, cache=None) as client:
                assert await names(client) == [*OURS, "note__write"]
            async with at(url, token="whole", mode=era, cache=None) as client:
                assert await names(client) == ["text__echo"]
    assert notes.written == []


async def test_a_changed_tool_is_found_as_it_is_now_and_a_list_without_it_is_not_announced(
    remit_in: OpenRemit,
) -> None:
    def one(description: str) -> Any:
        return offered({"name": "tide", "description": description, "inputSchema": {"type": "object"}})

    far = Upstream(one("Tells the tide."))
    async with (
        remit_in(providers=[far]) as remit,
        facing(remit, terms=SEARCH) as face,
        Link("lines", "legacy").connect(face) as client,
    ):
        before = await raw(client, "tools/list", {})
        assert (await found(client, "tide"))[0]["description"] == "Tells the tide."
        far.change(one("Tells the height of the sea."))
        assert (await found(client, "height of the sea"))[0]["name"] == "mcp__far__tide"
        assert await raw(client, "tools/list", {}) == before


def schema_of(face: ToolServer, name: str) -> Any:
    return face.input_schema(name)


async def test_headers_that_repeat_arguments_are_checked_for_hidden_tools_too(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[echo]) as remit, facing(remit, terms=SEARCH) as face:
        async with Link("lines", MODERN).connect(face) as client:
            await names(client)
        assert schema_of(face, "text__echo") == echo.meta.input_schema
