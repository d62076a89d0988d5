"""Servers on HTTP: what fails there fails alone, a lost session is made again, and everything has an end."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp.server.subscriptions import ToolsListChanged
from mcp_types import Tool
from starlette.types import Scope, Send

from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.mcp import connection, supervisor
from remit_testing.providers import call_context
from tests.gateway.world import opened
from tests.patience import PATIENCE_S
from tests.providers.mcp.sdk import answer, http_server
from tests.providers.mcp.world import World

pytestmark = pytest.mark.slow

ECHO, HANG = "mcp.puppet.echo", "mcp.puppet.hang"
CHANGED = Tool(name="echo", description="Another text.", input_schema={"type": "object"})


@pytest.mark.parametrize("options", [{}, {"json_response": True}, {"stateless_http": True}], ids=str)
@pytest.mark.parametrize("era", ["auto", "legacy", "modern"])
async def test_a_call_is_answered(mcp: World, era: str, options: dict[str, bool]) -> None:
    async with http_server(**options) as server:
        provider = mcp.provider(mcp.server(url=server.url, era=era, headers={"Authorization": "Bearer t0ken"}))
        assert (await provider.invoke(ECHO, {"text": "hello"}, call_context())).value == "hello"
        assert (await provider.status()).era == ("legacy" if era == "legacy" else "modern")
        assert {headers.get("authorization") for _, headers in server.requests} == {"Bearer t0ken"}
        await provider.close()


@pytest.mark.parametrize("status", [400, 404, 405, 406, None])
async def test_a_server_of_before_2026_is_found_out_however_it_refuses(
    mcp: World, status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PROBE_S", 0.2)

    async def old(scope: Scope, send: Send) -> bool:
        if (b"mcp-method", b"server/discover") not in scope["headers"]:
            return False
        if status is None:
            await asyncio.Event().wait()
        else:
            await answer(send, status, b"what?")
        return True

    async with http_server() as server:
        server.before = old
        provider = mcp.provider(mcp.server(url=server.url))
        assert (await provider.invoke(ECHO, {"text": "hello"}, call_context())).value == "hello"
        assert (await provider.status()).era == "legacy"
        await provider.close()


@pytest.mark.parametrize(("supported", "era"), [("2026-07-28", "modern"), ("2099-01-01", "legacy")])
async def test_a_version_that_is_refused_and_listed_is_asked_for_again(mcp: World, supported: str, era: str) -> None:
    refusals = [{"code": -32022, "message": "what?", "data": {"supported": [supported], "requested": "2026-07-28"}}]

    async def busy(scope: Scope, send: Send) -> bool:
        if (b"mcp-method", b"server/discover") not in scope["headers"] or not refusals:
            return False
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": refusals.pop()}).encode()
        await answer(send, 400, body, b"application/json")
        return True

    async with http_server() as server:
        server.before = busy
        provider = mcp.provider(mcp.server(url=server.url))
        assert (await provider.invoke(ECHO, {"text": "hello"}, call_context())).value == "hello"
        assert (await provider.status()).era == era
        await provider.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_cancellation_reaches_the_server(mcp: World, era: str) -> None:
    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era=era))
        call = asyncio.create_task(provider.invoke(HANG, {}, call_context()))
        await server.hanging.wait()
        call.cancel()
        await asyncio.wait([call])
        async with asyncio.timeout(PATIENCE_S):
            await server.cancelled.wait()
        assert (await provider.invoke(ECHO, {"text": "on"}, call_context())).value == "on"
        await provider.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(
    ("status", "cause"),
    [(500, Code.BadGateway), (502, Code.BadGateway), (401, Code.AuthError), (403, Code.AuthError)],
)
async def test_a_request_that_fails_fails_alone(mcp: World, era: str, status: int, cause: Code) -> None:
    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era=era))
        hanging = asyncio.create_task(provider.invoke(HANG, {}, call_context()))
        await server.hanging.wait()
        before = await provider._supervisor.connection()

        async def refuse(_scope: Scope, send: Send) -> bool:
            await answer(send, status, b"<h1>no</h1>")
            return True

        server.before = refuse
        with pytest.raises(ProviderError, match=f"HTTP {status}") as caught:
            await provider.invoke(ECHO, {"text": "x"}, call_context())
        assert caught.value.cause is cause
        server.before = None
        assert (await provider.invoke(ECHO, {"text": "on"}, call_context())).value == "on"
        assert not hanging.done(), "others go on"
        assert await provider._supervisor.connection() is before
        hanging.cancel()
        await asyncio.wait([hanging])
        await provider.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_answer_that_breaks_off_leaves_that_call_in_doubt_and_no_other(mcp: World, era: str) -> None:
    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era=era))
        hanging = asyncio.create_task(provider.invoke(HANG, {}, call_context()))
        await server.hanging.wait()

        async def break_off(_scope: Scope, send: Send) -> bool:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"jsonrpc":', "more_body": True})
            raise ConnectionResetError

        server.before = break_off
        with pytest.raises(ProviderError):
            await provider.invoke(ECHO, {"text": "x"}, call_context())
        server.before = None
        assert (await provider.invoke(ECHO, {"text": "on"}, call_context())).value == "on"
        assert not hanging.done()
        hanging.cancel()
        await asyncio.wait([hanging])
        await provider.close()


async def test_a_server_that_is_not_there_is_in_no_doubt(mcp: World) -> None:
    provider = mcp.provider(mcp.server(url="http://127.0.0.1:1/mcp"))
    with pytest.raises(ProviderError, match="Cannot connect") as caught:
        await provider.list_tools()
    assert caught.value.cause is Code.SpawnFailed


async def test_a_server_that_went_away_was_sent_nothing(mcp: World) -> None:
    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era="modern", level="L1"))
        await provider.list_tools()
    with pytest.raises(ProviderError) as caught:
        await provider.invoke(ECHO, {"text": "x"}, call_context())
    assert caught.value.cause is Code.SpawnFailed
    await provider.close()


async def test_a_call_to_a_server_that_restarted_is_made_once_more_in_a_new_session(mcp: World) -> None:
    async with http_server() as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        provider = mcp.provider(mcp.server(url=server.url, era="legacy", level="L0"))
        assert (await provider.invoke(ECHO, {"text": "one"}, call_context())).value == "one"
        mcp.clock.advance(supervisor.STABLE_S)
    async with http_server(port) as server:
        assert (await provider.invoke(ECHO, {"text": "two"}, call_context())).value == "two"
        await provider.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_changed_tools_are_heard_of(mcp: World, era: str) -> None:
    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era=era))
        await provider.list_tools()
        told = asyncio.Event()
        provider.watch(told.set)
        server.tools = [CHANGED]
        if era == "modern":
            await server.listening()
            await server.bus.publish(ToolsListChanged())
        else:
            await provider.invoke(ECHO, {"text": "change"}, call_context())
        async with asyncio.timeout(PATIENCE_S):
            await told.wait()
        (meta,) = await provider.list_tools()
        assert meta.withheld
        await provider.close()


async def test_a_server_that_restarted_is_asked_anew_what_it_offers(mcp: World) -> None:
    """Without a session nothing is lost with the old process, but what it would have told of changes is."""
    async with http_server() as server:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        provider = mcp.provider(mcp.server(url=server.url, era="modern"))
        await provider.list_tools()
        await server.listening()
    told = asyncio.Event()
    provider.watch(told.set)
    async with http_server(port) as server:
        server.tools = [CHANGED]
        await mcp.clock.until_asleep()
        mcp.clock.advance(connection.RELISTEN_S)
        async with asyncio.timeout(PATIENCE_S):
            await told.wait()
        assert [meta.withheld != "" for meta in await provider.list_tools()] == [True]
        await provider.close()


async def test_a_silent_server_on_http_is_closed_all_the_same(mcp: World) -> None:
    asked = asyncio.Event()

    async def silent(_scope: Scope, _send: Send) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    async with http_server() as server:
        server.before = silent
        provider = mcp.provider(mcp.server(url=server.url))
        listing = asyncio.create_task(provider.list_tools())
        await asked.wait()
        await provider.close()
        with pytest.raises(ProviderError) as caught:
            await listing
        assert caught.value.cause is Code.ProviderClosed


async def test_a_gateway_in_front_of_http_records_an_outcome_for_every_call(mcp: World) -> None:
    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, level="L0"))
        async with opened(provider) as world:
            outcomes = await asyncio.gather(*(world.call(ECHO, {"text": str(n)}, step=str(n)) for n in range(20)))
            assert [outcome.value for outcome in outcomes] == [str(n) for n in range(20)]


async def test_a_server_that_does_not_answer_our_goodbye_is_closed_all_the_same(mcp: World) -> None:
    async def unmoved(scope: Scope, _send: Send) -> bool:
        if scope["method"] == "DELETE":
            await asyncio.Event().wait()
        return False

    async with http_server() as server:
        server.before = unmoved
        provider = mcp.provider(mcp.server(url=server.url, era="legacy"))
        assert await provider.list_tools()
        await provider.close()
