"""Whatever a server on HTTP replies is an answer or says what it was; streams and connections are used to their end."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
import pytest
from starlette.types import Scope, Send

from remit.codes import Code
from remit.errors import ProviderError
from remit.providers.mcp import supervisor
from remit_testing.providers import call_context
from tests.gateway.world import opened
from tests.providers.mcp.sdk import answer, http_server
from tests.providers.mcp.world import World

pytestmark = pytest.mark.slow

ECHO = "mcp.puppet.echo"


def sse(*events: str) -> bytes:
    return "".join(f"{event}\n\n" for event in events).encode()


async def streamed(send: Send, body: bytes) -> None:
    await answer(send, 200, body, b"text/event-stream")


def asked(scope: Scope, name: str) -> str | None:
    found = [value.decode() for key, value in scope["headers"] if key.decode() == name]
    return found[0] if found else None


async def elsewhere(scope: Scope, send: Send) -> bool:
    """Everything but `/mcp` leads there."""
    if scope["path"] == "/mcp":
        return False
    await send({"type": "http.response.start", "status": 307, "headers": [(b"location", b"/mcp")]})
    await send({"type": "http.response.body"})
    return True


async def test_an_answer_that_broke_off_is_taken_up_again_where_the_server_remembers(mcp: World) -> None:
    taken_up: list[str] = []

    async def forgetful(scope: Scope, send: Send) -> bool:
        if scope["method"] == "GET" and (last := asked(scope, "last-event-id")):
            taken_up.append(last)
            result = '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"after all"}]}}'
            await streamed(send, sse(f"id: 2\ndata: {result}"))
            return True
        if scope["method"] == "POST" and calling:
            await streamed(send, sse("id: 1\nretry: 20\ndata:"))
            return True
        return False

    calling = False
    async with http_server() as server:
        server.before = forgetful
        provider = mcp.provider(mcp.server(url=server.url, era="legacy"))
        await provider.list_tools()
        calling = True
        call = asyncio.create_task(provider.invoke(ECHO, {"text": "x"}, call_context()))
        await mcp.clock.until_asleep()
        mcp.clock.advance(0.02)
        assert (await call).value == "after all"
        assert taken_up == ["1"]
        calling = False
        await provider.close()


@pytest.mark.parametrize(
    "body", [b"", sse(": nothing"), sse("data: {"), sse('data: {"jsonrpc":"2.0","id":99,"result":{}}')]
)
async def test_a_stream_without_the_answer_is_a_failure(mcp: World, body: bytes) -> None:
    async def empty(_scope: Scope, send: Send) -> bool:
        await streamed(send, body)
        return True

    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era="modern"))
        await provider.list_tools()
        server.before = empty
        with pytest.raises(ProviderError, match="without an answer") as caught:
            await provider.invoke(ECHO, {"text": "x"}, call_context())
        assert caught.value.cause is Code.ConnectionError
        await provider.close()


@pytest.mark.parametrize(
    ("status", "kind", "body", "says", "cause"),
    [
        (200, b"application/json", b"{", "not JSON|not an answer", Code.BadGateway),
        (200, b"application/json", b"[]", "not an answer", Code.BadGateway),
        (200, b"application/json", b'{"jsonrpc":"2.0","id":99,"result":{}}', "not an answer", Code.BadGateway),
        (200, b"text/html", b"<h1>hello</h1>", "text/html", Code.BadGateway),
        (202, b"application/json", b"", "202 Accepted", Code.BadGateway),
        (302, b"text/plain", b"", "points to http://127.0.0.1:1/login$", Code.BadGateway),
        (307, b"text/plain", b"", "points to http://127.0.0.1:1/login$", None),
        (418, b"text/plain", b"", "HTTP 418", None),
        (404, b"text/plain", b"", "HTTP 404", Code.ToolNotFound),
        (
            400,
            b"application/json",
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}',
            "bad",
            Code.InvalidInput,
        ),
        (500, b"application/json", b'{"error":"no message of JSON-RPC"}', "HTTP 500", Code.BadGateway),
        (500, b"application/json", b"x" * 200_000, "HTTP 500", Code.BadGateway),
    ],
)
async def test_what_is_no_answer_says_what_it_was(
    mcp: World, status: int, kind: bytes, body: bytes, says: str, cause: Code | None
) -> None:
    async def odd(_scope: Scope, send: Send) -> bool:
        headers = [(b"content-type", kind), (b"location", b"http://user:pass@127.0.0.1:1/login?token=hunter2#x")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return True

    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era="modern"))
        await provider.list_tools()
        server.before = odd
        with pytest.raises(ProviderError, match=says) as caught:
            await provider.invoke(ECHO, {"text": "x"}, call_context())
        assert caught.value.cause is cause
        assert "hunter2" not in str(caught.value)
        await provider.close()


@pytest.mark.parametrize(
    ("status", "kind", "in_doubt"),
    [
        (200, b"text/html", True),
        (202, b"text/plain", True),
        (204, b"text/plain", True),
        (302, b"text/plain", True),
        (303, b"text/plain", True),
        (307, b"text/plain", False),
        (400, b"application/json", False),
        (401, b"text/plain", False),
        (408, b"application/json", True),
        (413, b"text/plain", False),
        (429, b"text/plain", False),
        (499, b"text/plain", True),
        (500, b"application/json", True),
        (500, b"text/plain", True),
        (501, b"text/plain", False),
        (502, b"application/json", True),
        (503, b"text/plain", True),
        (504, b"application/json", True),
    ],
)
async def test_a_write_is_in_doubt_unless_the_reply_says_that_it_was_not_taken(
    mcp: World, status: int, kind: bytes, in_doubt: bool
) -> None:
    told = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"timed out"}}'

    async def gateway(scope: Scope, send: Send) -> bool:
        if asked(scope, "mcp-method") != "tools/call":
            return False
        headers = [(b"content-type", kind), (b"location", b"http://127.0.0.1:1/elsewhere")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if status == 204 else told})
        return True

    async with http_server() as server:
        server.before = gateway
        provider = mcp.provider(mcp.server(url=server.url, era="modern", level="L1"))
        async with opened(provider, rules=[{"id": "all-run", "effect": "allow", "tools": ["*"]}]) as world:
            outcome = await world.call(ECHO, {"text": "x"})
        assert (outcome.status, outcome.uncertain) == ("failed", in_doubt)


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
async def test_an_answer_beyond_the_cap_fails_and_the_next_one_does_not(mcp: World, kind: bytes) -> None:
    async def big(_scope: Scope, send: Send) -> bool:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"x" * 10_000, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return True

    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era="modern"), max_message_bytes=500_000)
        await provider.list_tools()
        server.before = big
        with pytest.raises(ProviderError, match="longer than 500000 bytes") as caught:
            await provider.invoke(ECHO, {"text": "x"}, call_context())
        assert caught.value.cause is Code.BadGateway
        server.before = None
        assert (await provider.invoke(ECHO, {"text": "on"}, call_context())).value == "on"
        await provider.close()


async def test_a_redirection_within_the_origin_is_followed(mcp: World) -> None:
    async with http_server() as server:
        server.before = elsewhere
        provider = mcp.provider(mcp.server(url=f"{server.url}/old", era="legacy"))
        assert (await provider.invoke(ECHO, {"text": "hello"}, call_context())).value == "hello"
        await provider.close()


async def test_a_circle_of_redirections_has_an_end(mcp: World) -> None:
    async def around(_scope: Scope, send: Send) -> bool:
        await send({"type": "http.response.start", "status": 308, "headers": [(b"location", b"/mcp")]})
        await send({"type": "http.response.body"})
        return True

    async with http_server() as server:
        server.before = around
        provider = mcp.provider(mcp.server(url=server.url, era="modern"))
        with pytest.raises(ProviderError, match="HTTP 308"):
            await provider.list_tools()
        assert len(server.requests) < 20
        await provider.close()


async def test_whatever_goes_wrong_with_a_request_is_its_outcome(mcp: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_options: Any) -> Any:
        raise RuntimeError("a mistake of ours")

    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era="modern"))
        await provider.list_tools()
        monkeypatch.setattr(aiohttp.ClientSession, "request", broken)
        with pytest.raises(ProviderError, match="a mistake of ours"):
            await provider.invoke(ECHO, {"text": "x"}, call_context())
        await provider.close()


async def test_one_connection_serves_calls_one_after_another(mcp: World) -> None:
    ports: set[int] = set()

    async def note(scope: Scope, _send: Send) -> bool:
        if asked(scope, "mcp-method") == "tools/call" or asked(scope, "mcp-session-id"):
            ports.add(scope["client"][1])
        return False

    for era in ("modern", "legacy"):
        async with http_server() as server:
            server.before = note
            provider = mcp.provider(mcp.server(url=server.url, era=era))
            await provider.list_tools()
            ports.clear()
            for number in range(10):
                assert (await provider.invoke(ECHO, {"text": str(number)}, call_context())).value == str(number)
            assert len(ports) <= 2, "an answer that came as a stream leaves its connection to the next call"
            await provider.close()


async def test_no_server_costs_a_tls_context_of_its_own(mcp: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(*_args: Any, **_options: Any) -> Any:
        pytest.fail("a TLS context takes 28 ms")

    monkeypatch.setattr(ssl, "create_default_context", another)
    provider = mcp.provider(mcp.server(url="https://127.0.0.1:1/mcp"))
    with pytest.raises(ProviderError, match="Cannot connect"):
        await provider.list_tools()


@pytest.mark.parametrize(("without", "reached"), [("", True), ("127.0.0.1", False)])
async def test_a_proxy_of_the_environment_is_used(
    mcp: World, monkeypatch: pytest.MonkeyPatch, without: str, reached: bool
) -> None:
    async def proxy(scope: Scope, send: Send) -> bool:
        through.append(scope["path"])
        await answer(send, 502)
        return True

    through: list[str] = []
    async with http_server() as server:
        server.before = proxy
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/mcp"))
        monkeypatch.setenv("no_proxy", without)
        provider = mcp.provider(mcp.server(url="http://127.0.0.1:1/mcp"))
        with pytest.raises(ProviderError, match="HTTP 502" if reached else "Cannot connect"):
            await provider.list_tools()
        assert bool(through) is reached
        await provider.close()


@pytest.mark.parametrize(
    ("proxy", "says"),
    [("127.0.0.1:1", "Cannot connect"), ("socks5://127.0.0.1:1", "a proxy of the kind socks5"), ("", "HTTP 502")],
)
async def test_a_proxy_is_what_curl_takes_for_one(
    mcp: World, monkeypatch: pytest.MonkeyPatch, proxy: str, says: str
) -> None:
    async def refuse(_scope: Scope, send: Send) -> bool:
        await answer(send, 502)
        return True

    async with http_server() as server:
        server.before = refuse
        monkeypatch.setenv("all_proxy", proxy)
        provider = mcp.provider(mcp.server(url=server.url))
        with pytest.raises(ProviderError, match=says):
            await provider.list_tools()
        await provider.close()


@pytest.mark.parametrize("code", [-32001, -32000, -32600])
async def test_a_session_that_is_gone_is_known_whatever_words_the_server_has_for_it(mcp: World, code: int) -> None:
    forgotten = set[bytes]()

    async def forget(scope: Scope, send: Send) -> bool:
        session = dict(scope["headers"]).get(b"mcp-session-id")
        if session is None or session not in forgotten:
            return False
        error = f'{{"jsonrpc":"2.0","error":{{"code":{code},"message":"Who are you?"}},"id":null}}'
        await answer(send, 404, error.encode(), b"application/json")
        return True

    async with http_server() as server:
        server.before = forget
        provider = mcp.provider(mcp.server(url=server.url, era="legacy"))
        await provider.list_tools()
        mcp.clock.advance(supervisor.STABLE_S)
        forgotten |= {
            headers["mcp-session-id"].encode() for _, headers in server.requests if "mcp-session-id" in headers
        }
        assert forgotten
        assert (await provider.invoke(ECHO, {"text": "x"}, call_context())).value == "x"  # once more, in a new session
        await provider.close()


async def test_a_server_that_forgets_each_session_has_certainly_not_made_the_call(mcp: World) -> None:
    async def forget(scope: Scope, send: Send) -> bool:
        called = dict(scope["headers"]).get(b"mcp-session-id") is not None and forgets
        if called:
            await answer(send, 404, b"")
        return called

    async with http_server() as server:
        forgets, server.before = False, forget
        provider = mcp.provider(mcp.server(url=server.url, era="legacy"))
        await provider.list_tools()
        mcp.clock.advance(supervisor.STABLE_S)
        forgets = True
        with pytest.raises(ProviderError) as caught:
            await provider.invoke(ECHO, {"text": "x"}, call_context())
        assert caught.value.cause is Code.SpawnFailed
        await provider.close()


async def test_everything_after_the_handshake_names_the_version(mcp: World) -> None:
    async with http_server() as server:
        provider = mcp.provider(mcp.server(url=server.url, era="legacy"))
        await provider.list_tools()
        await provider.close()
        versions = [headers.get("mcp-protocol-version") for _, headers in server.requests]
        assert {method for method, _ in server.requests} == {"POST", "GET", "DELETE"}
    assert versions[0] is None
    assert set(versions[1:]) == {"2025-11-25"}


async def test_who_we_are_may_stand_in_the_url_and_goes_along_with_a_redirection(mcp: World) -> None:
    async with http_server() as server:
        server.before = elsewhere
        provider = mcp.provider(mcp.server(url=server.url.replace("//", "//me:hunter2@") + "/old"))
        await provider.list_tools()
        await provider.close()
        assert {headers.get("authorization") for _, headers in server.requests} == {"Basic bWU6aHVudGVyMg=="}


async def test_a_redirection_that_brings_a_name_of_its_own_is_not_followed(mcp: World) -> None:
    async def disguised(_scope: Scope, send: Send) -> bool:
        there = server.url.replace("//", "//you:swordfish@").encode()
        await send({"type": "http.response.start", "status": 307, "headers": [(b"location", there)]})
        await send({"type": "http.response.body"})
        return True

    async with http_server() as server:
        server.before = disguised
        provider = mcp.provider(mcp.server(url=server.url))
        with pytest.raises(ProviderError, match="HTTP 307") as caught:
            await provider.list_tools()
        assert "swordfish" not in str(caught.value)
        await provider.close()
