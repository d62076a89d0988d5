"""The network of a sandbox: none, or what an allow-list lets through to public addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.http import addresses
from remit.parts.sandbox.policy import allowed, read, shared
from remit.parts.sandbox.proxy import Proxy
from remit.parts.sandbox.wiring import open_sandbox
from remit.process.enclosure import ConnectionAttempt, RunLimits, Spec
from remit.settings import load
from tests.parts.sandbox.conftest import PYTHON, Box


@pytest.mark.parametrize(
    ("entry", "host", "port", "through"),
    [
        ("a.example", "a.example", 443, True),
        ("a.example", "A.Example.", 80, True),
        ("a.example", "a.example", 22, False),
        ("a.example", "b.a.example", 443, False),
        ("a.example", "nota.example", 443, False),
        ("a.example:8443", "a.example", 8443, True),
        ("a.example:8443", "a.example", 443, False),
        ("*.example", "b.example", 443, True),
        ("*.example", "c.b.example", 443, True),
        ("*.example", "example", 443, False),
        ("*.example", "badexample", 443, False),
        ("*", "a.example", 443, True),
        ("*", "a.example", 8443, False),
        ("*:8443", "a.example", 8443, True),
    ],
)
def test_an_entry_means_a_host_and_its_ports(entry: str, host: str, port: int, through: bool) -> None:
    assert allowed((entry,), host, port) is through


@pytest.mark.parametrize(
    ("some", "others", "both"),
    [
        (["a.example"], ["a.example", "b.example"], ("a.example",)),
        (["*.example"], ["a.example", "b.a.example:443", "a.example:22"], ("a.example", "b.a.example:443")),
        (["*"], ["*.example"], ("*.example",)),
        (["*.a.example"], ["*.example"], ("*.a.example",)),
        (["*.example"], ["example"], ()),
        (["a.example"], [], ()),
        (["*:8443"], ["a.example"], ()),
    ],
)
def test_two_lists_let_through_what_both_do(some: list[str], others: list[str], both: tuple[str, ...]) -> None:
    assert shared(some, others) == shared(others, some) == both


@pytest.mark.parametrize(
    "entry", ["", "*.", "**", "http://a.example", "a..example", "a.example:", "a b", "a.example:x"]
)
def test_what_is_no_entry_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="does not look like"):
        read(entry)


def test_an_entry_of_the_settings_that_is_none_is_an_error(tmp_path: Path) -> None:
    settings = load(cwd=tmp_path, env={}, flags={"sandbox.network": ["http://a.example"]})
    with pytest.raises(SettingsError, match=r"sandbox.network: 'http://a.example' does not look like"):
        open_sandbox(settings)


@pytest.fixture
async def site() -> AsyncIterator[int]:
    """A server on loopback that says what it was asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + head.split(b"\r\n")[0] + (b" auth" if b"secret" in head else b""))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def talk(proxy: Proxy, sent: bytes) -> bytes:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    await proxy.serve(listening)
    reader, writer = await asyncio.open_connection(*listening.getsockname())
    writer.write(sent)
    try:
        return await reader.read()
    finally:
        writer.close()
        await proxy.close()


def proxy_to(port: int, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    """A proxy for which loopback counts as public: the only address that tests may talk to."""

    async def loopback(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(addresses, "why_blocked", lambda _address: "")
    return Proxy((f"site.example:{port}",), loopback)


async def test_a_request_goes_through_without_what_is_for_the_proxy(site: int, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = proxy_to(site, monkeypatch)
    asked = f"GET http://site.example:{site}/p?q=1 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: secret\r\n\r\n"
    assert (await talk(proxy, asked.encode())).endswith(b"GET /p?q=1 HTTP/1.1")
    [connection] = proxy.connections
    assert connection.allowed
    assert connection.sent
    assert connection.received


async def test_a_tunnel_carries_bytes_both_ways(site: int, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = proxy_to(site, monkeypatch)
    sent = f"CONNECT site.example:{site} HTTP/1.1\r\n\r\nGET /t HTTP/1.0\r\n\r\n"
    found = await talk(proxy, sent.encode())
    assert found.startswith(b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert found.endswith(b"GET /t HTTP/1.0")


async def test_a_host_that_leads_to_a_private_address_is_refused(site: int) -> None:
    proxy = Proxy((f"localhost:{site}",))
    found = await talk(proxy, f"CONNECT localhost:{site} HTTP/1.1\r\n\r\n".encode())
    assert found.startswith(b"HTTP/1.1 403 ")
    assert b"it is not public" in found
    assert not proxy.connections[0].allowed


async def test_a_host_that_the_operator_named_may_have_a_private_address(site: int) -> None:
    heard: list[ConnectionAttempt] = []
    proxy = Proxy(("*",), private=(f"localhost:{site}",), listener=heard.append)
    found = await talk(proxy, f"GET http://localhost:{site}/p HTTP/1.1\r\n\r\n".encode())
    assert found.endswith(b"GET /p HTTP/1.1")
    assert (heard[0].port, heard[0].reason) == (site, "")


async def test_a_listener_hears_what_was_refused_and_why() -> None:
    heard: list[ConnectionAttempt] = []
    proxy = Proxy(("*",), private=("localhost:1",), listener=heard.append)
    await talk(proxy, b"CONNECT localhost:443 HTTP/1.1\r\n\r\n")
    assert [(one.host, one.allowed) for one in heard] == [("localhost", False)]
    assert "it is not public" in heard[0].reason


@pytest.mark.parametrize(
    "asked", ["GET / HTTP/1.1", "GET ftp://a.example/ HTTP/1.1", "x", "CONNECT a.example:99999 HTTP/1.1"]
)
async def test_what_is_no_request_for_a_proxy_is_refused(asked: str) -> None:
    assert (await talk(Proxy(("a.example",)), f"{asked}\r\n\r\n".encode())).startswith(b"HTTP/1.1 400 ")


async def test_a_program_reaches_the_proxy_and_nothing_else(box: Box) -> None:
    code = (
        "import socket, urllib.error, urllib.request\n"
        "try:\n    urllib.request.urlopen('http://other.example/')\n"
        "except urllib.error.HTTPError as e:\n    print(e.code)\n"
        "for place in (('1.1.1.1', 80), ('169.254.169.254', 80), ('127.0.0.1', 22)):\n"
        "    try:\n        socket.create_connection(place, 2); print('reached', place)\n"
        "    except OSError:\n        pass\n"
    )
    spec = Spec(id="n", argv=(PYTHON, "-c", code), workspace=box.work, limits=RunLimits(), network=("a.example",))
    found = await box.driver.exec(spec)
    assert found.stdout.data == b"403\n", found.stderr.data
    assert [(one.host, one.allowed) for one in found.receipt.connections] == [("other.example", False)]
    assert found.receipt.network == ["a.example"]
