"""What goes over the network and what comes back: tokens to their server alone, and hostile answers read as data."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from remit.canonical import sha256
from remit.cli.errors import describe, show
from remit.cli.output import TerminalOutput
from remit.client.connection import ServerConnection, proxy_for
from remit.codes import Code
from remit.errors import RemitError, ServerError
from remit.http import addresses
from remit.http.addresses import why_blocked
from remit.parts.sandbox import proxy as proxies
from remit.parts.sandbox.proxy import Proxy
from tests.client.test_connection import answering, peer
from tests.parts.sandbox.test_network import proxy_to, talk


class Heard:
    """A server that keeps what it hears and answers an empty list."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]")
        await writer.drain()
        writer.close()


@pytest.fixture
async def heard() -> AsyncIterator[Heard]:
    one = Heard()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield one


# --- to a server of Remit


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_token_for_this_machine_goes_through_no_proxy(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, heard.url)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with ServerConnection(f"http://127.0.0.1:{port}", "rmt_secret") as connection:
        with pytest.raises(ServerError):
            await connection.ask("tickets.release", "t", body={})
    assert heard.heads == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://remit.example", "http://proxy.example:3128"),
        ("https://inside.example", None),
        ("http://localhost:8320", None),
        ("https://127.0.0.1:8320", None),
        ("https://[::1]:8320", None),
    ],
)
def test_a_proxy_is_for_other_machines(monkeypatch: pytest.MonkeyPatch, url: str, expected: str | None) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for(url) == expected


@pytest.mark.parametrize("token", ["", "rmt_secret"])
async def test_passwords_of_netrc_go_to_no_server_and_stop_no_request(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, token: str
) -> None:
    place = tmp_path / "netrc"
    place.write_text("default login ann password hunter2\n", encoding="utf-8")
    place.chmod(0o600)
    monkeypatch.setenv("NETRC", str(place))
    async with ServerConnection(heard.url, token) as connection:
        assert await connection.ask("tools.page") == []
    (head,) = heard.heads
    assert b"Basic" not in head
    assert (b"Bearer rmt_secret" in head) == bool(token)


@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"307 Temporary", b"308 Permanent"])
async def test_a_token_follows_no_redirect(heard: Heard, status: bytes) -> None:
    where = f"location: {heard.url}/v1/tools\r\n".encode()
    async with peer(answering(b"{}", status, where)) as (_, remit):
        with pytest.raises(RemitError):
            await remit.service.tools.views()
    assert heard.heads == []


@pytest.mark.parametrize(
    "body",
    [b"", b"[" * 100_000, b'{"items": 1}', b'"\xff"', b"<html>", b'[{"name": "\\ud800"}]', b"null", b"1e999"],
)
async def test_a_hostile_answer_is_an_error_with_a_code(body: bytes) -> None:
    async with peer(answering(body)) as (_, remit):
        with pytest.raises(RemitError) as caught:
            await remit.service.tools.views()
    assert caught.value.code in {Code.SERVER_ANSWER_INVALID, Code.SERVER_UNREACHABLE}


async def test_a_hostile_problem_redraws_no_screen(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\x1b[2J\x1b]0;owned\x07\u202e\u3164"
    body = msgspec.json.encode({"error_code": "JOB_NOT_FOUND", "detail": text, "remedy": text, "status": 404})
    async with peer(answering(body, b"404 Not Found")) as (_, remit):
        with pytest.raises(RemitError) as caught:
            await remit.service.jobs.row("job_1")
    show(describe(caught.value), TerminalOutput("never"))
    shown = capsys.readouterr().err
    assert "owned" in shown
    assert shown.replace("\n", "").isascii()
    assert "\x1b" not in shown


async def test_bytes_that_are_not_those_that_were_asked_for_are_refused() -> None:
    async with peer(answering(b"#!/bin/sh\n")) as (_, remit):
        with pytest.raises(ServerError) as caught:
            await remit.service.artifacts.read("job_1", sha256(b"harmless"))
    assert caught.value.code is Code.SERVER_ANSWER_INVALID


# --- out of the sandbox


async def test_the_proxy_names_the_host_that_it_judged(monkeypatch: pytest.MonkeyPatch, heard: Heard) -> None:
    port = int(heard.url.rpartition(":")[2])
    asked = f"GET http://site.example:{port}/ HTTP/1.1\r\nhost: inside.example\r\nHOST : other.example\r\n\r\n"
    await talk(proxy_to(port, monkeypatch), asked.encode())
    (head,) = heard.heads
    hosts = [line for line in head.split(b"\r\n") if line.lower().startswith(b"host")]
    assert hosts == [f"Host: site.example:{port}".encode()]


async def test_a_program_does_not_take_every_descriptor_of_remit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "_AT_ONCE", 3)
    proxy, listening = Proxy(("a.example",)), socket.create_server(("127.0.0.1", 0))
    await proxy.serve(listening)
    idle = [await asyncio.open_connection(*listening.getsockname()) for _ in range(3)]
    reader, writer = await asyncio.open_connection(*listening.getsockname())
    assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
    for _, one in (*idle, (reader, writer)):
        one.close()
    await proxy.close()


@pytest.mark.parametrize(
    "asked",
    [
        "CONNECT 127.0.0.1:443",
        "CONNECT [::ffff:127.0.0.1]:443",
        "CONNECT 2130706433:443",
        "CONNECT 0x7f000001:443",
        "CONNECT 017700000001:443",
        "CONNECT a.example@127.0.0.1:443",
        "CONNECT a.example%00.evil:443",
        "CONNECT a.example\t:443",
        "CONNECT a.example#:443",
        "CONNECT a.example/../evil:443",
        "CONNECT evil.a.example:443",
        "CONNECT a.example:22",
        "CONNECT a.example:0443x",
        "GET http://evil@a.example.evil/",
        "GET http://a.example:80@evil/",
        "GET http://a.example\\@evil/",
        "GET http:///a.example/",
        "GET //a.example/",
        "GET https://a.example/",
        "connect a.example:443",
    ],
)
async def test_no_spelling_leads_past_the_list_of_hosts(asked: str) -> None:
    reached: list[str] = []

    async def resolve(host: str, _port: int) -> list[str]:
        reached.append(host)
        return ["127.0.0.1"]

    answer = await talk(Proxy(("a.example",), resolve), f"{asked} HTTP/1.1\r\n\r\n".encode("latin-1"))
    assert answer.split(b" ")[1] in {b"400", b"403"}
    assert set(reached) <= {"a.example"}


async def test_the_address_that_was_judged_is_the_one_that_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look-up would give another answer (DNS rebinding)."""
    answers = iter([["127.0.0.1", "169.254.169.254"], ["127.0.0.1"]])

    async def resolve(_host: str, _port: int) -> list[str]:
        return next(answers)

    monkeypatch.setattr(addresses, "why_blocked", lambda text: "" if text == "127.0.0.1" else "it is not public")
    assert (await talk(Proxy(("a.example",), resolve), b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")).startswith(
        b"HTTP/1.1 403"
    )
    assert list(answers) == [["127.0.0.1"]]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "0.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "192.0.0.170", "198.18.0.1", "224.0.0.1",
        "255.255.255.255", "::1", "::", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b:1::a00:1", "2002:7f00:1::", "2001:0:7f00:1::", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1",
        "2001:db8::1", "168.63.129.16", "not an address", "1.2.3", "",
    ],
)  # fmt: skip
def test_no_address_that_leads_inside_is_public(address: str) -> None:
    assert why_blocked(address)
