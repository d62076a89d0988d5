"""HTTPS with a certificate of the operator's: what is served, and what cannot be."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import SettingsError
from remit.http.guard import Guard
from remit.http.router import Router
from remit.http.server import listen, serve, server_context
from tests.http.certificates import Certificate, certificate
from tests.patience import PATIENCE_S


@asynccontextmanager
async def served(found: Certificate, *, head_s: float = 0.5, most: int = 0) -> AsyncIterator[int]:
    """The port of a server that knows no path."""
    stop = asyncio.Event()
    tls = server_context(str(found.cert), str(found.key))
    with listen("127.0.0.1", 0) as listening:
        router = Router(Guard.of("127.0.0.1", (), (), SystemClock()), [])
        running = asyncio.create_task(serve(router, listening, stop, tls=tls, head_s=head_s, most=most))
        try:
            yield listening.getsockname()[1]
        finally:
            stop.set()
            await running


def trusting(found: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(found.authority))


async def test_answers_come_over_tls_to_those_who_trust_the_certificate(tmp_path: Path) -> None:
    found = certificate(tmp_path)
    async with served(found) as port, aiohttp.ClientSession() as session:
        url = f"https://localhost:{port}/x"
        async with session.get(url, ssl=trusting(found)) as answer:
            assert (answer.status, (await answer.json(content_type=None))["error_code"]) == (404, "PATH_UNKNOWN")
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(url)


async def test_plain_http_and_old_tls_are_not_answered_and_the_next_client_is(tmp_path: Path) -> None:
    found = certificate(tmp_path)
    old = trusting(found)
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    async with served(found) as port, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://localhost:{port}/x")
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(f"https://localhost:{port}/x", ssl=old)
        async with session.get(f"https://localhost:{port}/x", ssl=trusting(found)) as answer:
            assert answer.status == 404


async def test_who_says_nothing_after_the_handshake_is_cut_off(tmp_path: Path) -> None:
    found = certificate(tmp_path)
    async with served(found) as port:
        reader, writer = await asyncio.open_connection("localhost", port, ssl=trusting(found))
        writer.write(b"G")
        assert b"HEAD_TIMEOUT" in await reader.read()
        writer.close()


def test_the_key_may_stand_with_the_certificate(tmp_path: Path) -> None:
    found = certificate(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(found.cert.read_bytes() + found.key.read_bytes())
    assert server_context(str(both)).minimum_version is ssl.TLSVersion.TLSv1_2


def test_what_cannot_be_used_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    found, other = certificate(tmp_path), certificate(tmp_path, "other")
    guarded = certificate(tmp_path, "guarded", password=b"secret")
    text = tmp_path / "text.pem"
    text.write_text("no certificate", encoding="utf-8")
    wrong = {
        "cannot be read: No such file": (str(tmp_path / "none.pem"), str(found.key)),
        "none.key cannot be read": (str(found.cert), str(tmp_path / "none.key")),
        "text.pem: the certificate and its key": (str(text), ""),
        "localhost.pem: the certificate and its key": (str(found.cert), str(other.key)),
        "guarded.pem: the certificate and its key": (str(guarded.cert), str(guarded.key)),
        "serve.tls_key is set without a certificate": ("", str(found.key)),
    }
    for why, (cert, key) in wrong.items():
        with pytest.raises(SettingsError, match=why) as refused:
            server_context(cert, key)
        assert refused.value.code is Code.SETTINGS_INVALID
        assert refused.value.remedy


async def test_connections_without_a_handshake_make_room_for_others(tmp_path: Path) -> None:
    found = certificate(tmp_path)
    async with served(found, most=3) as port, aiohttp.ClientSession() as session:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        async with session.get(f"https://localhost:{port}/x", ssl=trusting(found)) as answer:
            assert answer.status == 404
        for reader, writer in silent[:2]:
            assert await reader.read() == b""
            writer.close()
        for _, writer in silent[2:]:
            writer.close()


async def test_a_handshake_that_never_begins_is_given_up(tmp_path: Path) -> None:
    async with served(certificate(tmp_path)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()


async def test_a_server_stops_in_the_middle_of_a_handshake(tmp_path: Path) -> None:
    async with served(certificate(tmp_path), head_s=60) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16")
        await writer.drain()
    assert await reader.read() == b""
    writer.close()
