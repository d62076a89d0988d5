"""Requests of strangers to what serves MCP over HTTP: each is refused or served, and nobody else is (reviews s07)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from remit import tool
from remit.clock import SystemClock
from remit.errors import SettingsError
from remit.http.guard import LOOPBACK, Guard
from remit.http.router import PartMount, Router
from remit.http.server import serve
from remit.mcp_server.endpoint import Endpoint
from remit.mcp_server.request import MAX_REQUEST_BYTES, PATH
from tests.mcp_server.links import application, at, facing, listening, person, serving, text_of
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

PEOPLE = [person(name) for name in ("alice", "bob", "mallory")]
PAID: list[str] = []
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}},
}  # fmt: skip


@tool("desk.pay", level="L1")
async def pay(to: str) -> str:
    """Pay somebody."""
    PAID.append(to)
    return f"paid {to}"


@tool("desk.look", level="L0")
async def look(what: Any = None) -> str:
    """Look at something."""
    return "looked"


class Gateway:
    """What is served, and bare requests to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.host = urlsplit(url).netloc

    async def sent(self, data: bytes, *, ends: bool = True) -> tuple[int, str]:
        """The status and text of the answer to bytes on a connection of their own."""
        there = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(there.hostname, there.port)
        try:
            writer.write(data)
            async with asyncio.timeout(PATIENCE_S):
                answer = await (reader.read() if ends else reader.readuntil(b"\r\n"))
        except (ConnectionError, BrokenPipeError):
            return 0, "closed"
        finally:
            writer.transport.abort()
        return (int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0), answer.decode("utf-8", "replace")

    def request(self, body: Any = HELLO, *, method: str = "POST", path: str = "/mcp", **headers: str | None) -> bytes:
        """A request as alice; a header that is empty is left out, `_` stands for `-`."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        said: dict[str, str | None] = {
            "host": self.host, "connection": "close", "accept": "application/json, text/event-stream",
            "content_type": "application/json", "authorization": "Bearer token-of-alice",
            "content_length": str(len(data)), **headers,
        }  # fmt: skip
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in said.items() if value is not None)
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + data

    async def asked(self, *given: Any, **headers: Any) -> int:
        return (await self.sent(self.request(*given, **headers)))[0]

    async def session(self, **headers: str) -> dict[str, str]:
        """The headers of a new session."""
        _, said = await self.sent(self.request(**headers))
        number = next(line for line in said.splitlines() if line.lower().startswith("mcp-session-id")).split(": ")[1]
        session = {"mcp_session_id": number, "mcp_protocol_version": "2025-11-25"}
        assert await self.asked({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session, **headers) == 202
        return session

    async def called(self, session: dict[str, str], name: str, args: Any, **headers: str) -> str:
        params = {"name": name, "arguments": args}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        return (await self.sent(self.request(call, **session, **headers)))[1]


@pytest.fixture
async def gateway(remit_in: OpenRemit) -> AsyncIterator[Gateway]:
    """Two tools; mallory may not pay."""
    PAID.clear()
    rules = [{"effect": "deny", "tools": ["desk.pay"], "callers": ["mcp:mallory"]}]
    async with (
        remit_in(tools=[pay, look], flags={"policy.rules": rules}) as remit,
        facing(remit, transport="http") as face,
        serving(face, clients=PEOPLE) as url,
    ):
        yield Gateway(url)
        assert await Gateway(url).asked() == 200, "it serves on"


STRANGERS: dict[str, tuple[dict[str, Any], set[int]]] = {
    "A01": ({"authorization": None}, {401}),
    "A02": ({"authorization": "Bearer wrong"}, {401}),
    "A03": ({"authorization": "Bearer token-of-alic"}, {401}),
    "A04": ({"authorization": "Bearer token-of-alice "}, {200, 401}),
    "A05": ({"authorization": "Basic dG9rZW4tb2YtYWxpY2U="}, {401}),
    "A06": ({"authorization": None, "path": "/mcp?token=token-of-alice&access_token=token-of-alice"}, {401}),
    "A07": ({"authorization": "Bearer token-of-alice, Bearer token-of-bob"}, {401}),
    "A08": ({"authorization": "Bearer "}, {401}),
    "A09": ({"authorization": "bEARER token-of-alice"}, {200}),
    "A11": ({"host": "evil.example"}, {421}),
    "A12": ({"host": "127.0.0.1.evil.example"}, {421}),
    "A13": ({"host": "localhost."}, {421}),
    "A14": ({"host": "localhost@evil"}, {400, 421}),
    "A15": ({"host": ""}, {400, 421}),
    "A16": ({"host": "127.0.0.1:abc"}, {421}),
    "A17": ({"host": "[::1"}, {400, 421}),
    "A18": ({"origin": "http://evil.example"}, {403}),
    "A19": ({"origin": "null"}, {403}),
    "A20": ({"origin": "http://localhost.evil.example"}, {403}),
    "A21": ({"origin": "file://"}, {403}),
    "A22": ({"origin": "chrome-extension://x"}, {403}),
    "A23": ({"origin": "http://localhost:3000", "authorization": None}, {401}),
    "A24": ({"content_type": "text/plain"}, {400, 415}),
}


async def test_a_request_that_is_none_of_a_client_s_is_refused(gateway: Gateway) -> None:
    found = {name: await gateway.asked(**headers) for name, (headers, _) in STRANGERS.items()}
    assert {name: status for name, status in found.items() if status not in STRANGERS[name][1]} == {}
    _, preflight = await gateway.sent(
        gateway.request(b"", method="OPTIONS", origin="http://evil.example", authorization=None)
    )  # A25
    assert "access-control" not in preflight.lower()


def test_tokens_are_compared_as_digests_all_of_them() -> None:  # A10: what is measured says nothing of a token
    guard = Guard(LOOPBACK, PEOPLE, SystemClock())
    assert "token-of-alice" not in str([vars(guard), PEOPLE])
    with pytest.MonkeyPatch.context() as patch:
        compared: list[str] = []

        def compare(one: str, other: str) -> bool:
            compared.append(one)
            return one == other

        patch.setattr("hmac.compare_digest", compare)
        guard.admit({"host": "localhost", "authorization": "Bearer token-of-alice"})
    assert len(compared) == len(PEOPLE)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.2", "127.1", "", "::ffff:127.0.0.1"])  # noqa: S104 - refused
async def test_no_other_address_is_listened_at_without_tokens(remit_in: OpenRemit, host: str) -> None:  # A26 to A31
    async with remit_in(work=False) as remit, facing(remit) as face:
        with pytest.raises(SettingsError, match="no client has a token"):
            application(face, host=host)


async def test_a_session_is_of_no_use_to_somebody_else(gateway: Gateway) -> None:
    session = await gateway.session()
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    mallory = {"authorization": "Bearer token-of-mallory"}
    assert await gateway.asked(listing, **session, **mallory) == 404  # B01
    assert await gateway.asked(b"", method="DELETE", **session, **mallory) == 404  # B02
    assert await gateway.asked(b"", method="GET", **session, **mallory, last_event_id="0") == 404  # B03
    assert await gateway.asked(listing, **session, authorization=None) == 401  # B04
    assert await gateway.asked(HELLO, mcp_session_id="0" * 32) in {400, 404}  # B05
    assert await gateway.asked(listing, **session) == 200
    others = {(await gateway.session())["mcp_session_id"] for _ in range(20)}  # B06
    assert len(others) == 20
    assert all(len(one) >= 32 and int(one.replace("-", ""), 16) for one in others)


SPELLINGS = [
    "desk__pay",
    "desk.pay",
    "desk_pay",
    "DESK__PAY",
    "desk__pay ",
    "desk__p\u0430y",
    "desk",
    "desk__pay\0",
    "DESK",
]


async def test_a_denied_tool_runs_under_no_name(gateway: Gateway) -> None:  # B07
    mallory = {"authorization": "Bearer token-of-mallory"}
    session = await gateway.session(**mallory)
    for name in SPELLINGS:
        said = await gateway.called(session, name, {"to": "eve", "operation": "pay"}, **mallory)
        assert "paid" not in said, name
    assert PAID == []


async def test_an_approval_of_one_client_pays_for_no_other(remit_in: OpenRemit) -> None:  # B09
    PAID.clear()
    async with AsyncExitStack() as stack:
        remit = await stack.enter_async_context(remit_in(tools=[pay, look]))
        face = await stack.enter_async_context(facing(remit, transport="http"))
        url = await stack.enter_async_context(serving(face, clients=PEOPLE))
        alice = await stack.enter_async_context(at(url, token="token-of-alice", mode="legacy"))
        bob = await stack.enter_async_context(at(url, token="token-of-bob", mode="legacy"))
        call = ("desk__pay", {"to": "ann"})
        assert "CONFIRMATION_REQUIRED" in text_of(await alice.call_tool(*call))
        (asked,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(asked.confirmation, "approve", by="carol")
        assert "CONFIRMATION_REQUIRED" in text_of(await bob.call_tool(*call))
        assert PAID == []
        assert text_of(await alice.call_tool(*call)) == "paid ann"
        assert "CONFIRMATION_REQUIRED" in text_of(await alice.call_tool(*call))
    assert PAID == ["ann"]


@pytest.mark.parametrize("path", [".env", ".git/config", "remit.toml"])
async def test_hidden_files_are_read_unless_a_rule_says_otherwise(
    remit_in: OpenRemit, tmp_path: Any, path: str
) -> None:  # B12: the limit that docs/security.md names
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text("", encoding="utf-8")
    hidden = {"effect": "deny", "when": {"path": {"glob": ["**/.*", "**/.*/**", "remit.toml"]}}}
    for rules, runs in (([], True), ([hidden], False)):
        async with remit_in(flags={"policy.rules": rules}, work=False) as remit:
            assert (await remit.call("fs.read", {"path": path})).ok is runs
            assert not (await remit.call("folder.read", {"folder": ".", "path": path})).ok or path == "remit.toml"


async def test_a_body_beyond_the_limit_is_refused(gateway: Gateway) -> None:
    assert await gateway.asked(b"", content_length=str(MAX_REQUEST_BYTES + 1)) == 413  # D01
    piece = b"%x\r\n" % (1 << 20) + b" " * (1 << 20) + b"\r\n"
    head = gateway.request(b"", content_length=None, transfer_encoding="chunked")
    assert (await gateway.sent(head + piece * (1 + MAX_REQUEST_BYTES // (1 << 20)), ends=False))[0] in {0, 413}  # D02


@pytest.mark.parametrize("length", ["9" * 5_000, "-1", "+5", "0x10", "5,5", "5 5"])
async def test_a_length_that_is_none_is_refused(gateway: Gateway, length: str) -> None:  # D03, D04
    assert await gateway.asked(b"", content_length=length) in {400, 413}


def call(args: str) -> bytes:
    params = '{"name":"desk__look","arguments":{"what":' + args + "}}"
    return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()


@pytest.mark.slow
async def test_odd_messages_are_answered_and_run_nothing(gateway: Gateway) -> None:
    session = await gateway.session()
    deep = [b"[" * 100_000, b'{"jsonrpc":"2.0","id":1,"method":' * 20_000]
    wrong = [
        b"[]",
        b'"x"',
        b"5",
        b"",
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"id":"\\ud800"}',
        b"\xff\xfe{}",
    ]
    for body in (*deep, *wrong):  # D05, D09
        assert await gateway.asked(body, **session) == 400, body[:40]
    for number in (b"null", b"1.5", b"true", b"{}", b"1" + b"0" * 400, b'"' + b"x" * 100_000 + b'"'):  # D08
        ping = b'{"jsonrpc":"2.0","id":' + number + b',"method":"ping"}'
        assert await gateway.asked(ping, **session) in {200, 202, 400}, number[:40]
    _, said = await gateway.sent(gateway.request(call('{"a":' * 900 + "1" + "}" * 900), **session))  # D06
    assert "INVALID_TOOL_ARGS" in said
    _, said = await gateway.sent(gateway.request(call(json.dumps({str(n): n for n in range(20_000)})), **session))
    assert "looked" in said  # D07


@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_headers_without_an_end_are_refused(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch, parser: str
) -> None:  # D10
    protocol = pytest.importorskip(f"uvicorn.protocols.http.{parser}_impl")
    name = "H11Protocol" if parser == "h11" else "HttpToolsProtocol"
    monkeypatch.setattr("remit.http.server.AutoHTTPProtocol", getattr(protocol, name))
    async with remit_in(work=False) as remit, facing(remit) as face, serving(face, clients=PEOPLE) as url:
        gateway = Gateway(url)
        for more in ({"x_a": "y" * 1_000_000}, {f"x_{n}": "y" * 100 for n in range(8_000)}):
            assert (await gateway.sent(gateway.request(**more), ends=False))[0] in {0, 400, 413}
            assert await gateway.asked(x_a="y" * 1_000) == 200


@pytest.mark.parametrize("path", ["/mcp/", "//mcp", "/MCP", "/mcp/../mcp", "/%6dcp", "/mcp;x", "/mcp%00", "/x", "*"])
async def test_no_other_path_lets_anybody_in(gateway: Gateway, path: str) -> None:  # D11
    assert await gateway.asked(path=path, authorization=None) in {400, 401, 404}


BODY = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
INNER = b"GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"
SMUGGLED: dict[str, dict[str, str | None]] = {
    "both lengths": {"content_length": "5", "transfer_encoding": "chunked"},
    "identity": {"content_length": None, "transfer_encoding": "chunked, identity"},
    "unknown": {"content_length": None, "transfer_encoding": "xchunked"},
    "two lengths": {"content_length": "40\r\ncontent-length: 5"},
    "line feed": {"x_a": "b\ncontent-length: 5"},
    "folded": {"x_a": "b\r\n c"},
    "blank before the colon": {"x_a ": "b"},
    "NUL": {"x_a": "b\0c"},
    "two hosts": {"x_a": "b\r\nhost: evil.example"},
    "two tokens": {"x_a": "b\r\nauthorization: Bearer token-of-mallory"},
    "two origins": {"origin": "http://localhost\r\norigin: http://evil.example"},
    "no host": {"host": None},
    "length in a list": {"content_length": "40, 40"},
    "chunked twice": {"content_length": None, "transfer_encoding": "chunked\r\ntransfer-encoding: chunked"},
}


@pytest.mark.parametrize("name", SMUGGLED)
async def test_no_request_hides_in_another(gateway: Gateway, name: str) -> None:  # D12, D13
    headers: dict[str, Any] = {"connection": "keep-alive", **SMUGGLED[name]}
    status, said = await gateway.sent(gateway.request(BODY + INNER, **headers) + INNER, ends=False)
    assert status in {0, 400, 401, 403, 404, 421}, said
    assert "/smuggled" not in said


async def test_requests_that_are_never_finished_keep_nobody_out(gateway: Gateway) -> None:  # E01, E02
    there = urlsplit(gateway.url)
    halves = [await asyncio.open_connection(there.hostname, there.port) for _ in range(100)]
    for _, writer in halves:
        writer.write(b"POST /mcp HTTP/1.1\r\nhost: x\r\nx-half: ")
    assert await gateway.asked() == 200
    for _, writer in halves:
        writer.transport.abort()
    assert await gateway.asked() == 200


async def test_a_body_that_never_comes_to_its_end_is_cut_off(remit_in: OpenRemit) -> None:  # E03
    stop = asyncio.Event()
    async with remit_in(work=False) as remit, facing(remit) as face:
        guard = Guard.of("127.0.0.1", (), PEOPLE, SystemClock())
        app = Router(guard, [PartMount(PATH, Endpoint(face, body_s=0.05), "call")])
        with listening() as taken:
            serving_ = asyncio.create_task(serve(app, taken, stop))
            gateway = Gateway(f"http://127.0.0.1:{taken.getsockname()[1]}{PATH}")
            status, said = await gateway.sent(gateway.request(b"{", content_length="60"))
            assert (status, "BODY_TIMEOUT" in said) == (408, True)
            assert await gateway.asked() == 200
            stop.set()
            await serving_


async def test_without_clients_a_caller_of_this_machine_is_the_operator(remit_in: OpenRemit) -> None:  # G01
    async with (
        remit_in(tools=[look], work=False) as remit,
        facing(remit, transport="http") as face,
        serving(face) as url,
        at(url, mode="legacy") as anyone,
    ):
        assert text_of(await anyone.call_tool("desk__look", {})) == "looked"
