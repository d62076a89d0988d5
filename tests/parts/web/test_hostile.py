"""The rows of tests/parts/web/hostile.py, against the fetcher that the web tools use."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from remit.codes import Code
from remit.parts.web.fetcher import Fetcher, WebError
from remit.parts.web.robots import parse
from tests.parts.web.hostile import ANSWERS, BLOCKED, BODIES, INVALID, LIMIT, ROBOTS

DOCS: Final = Path(__file__).parents[3] / "docs/web.md"
REDIRECTS: Final = [f"http://{host}/" for host in BLOCKED[::2]] + [
    url for url in INVALID if url.isprintable() and "://" in url and not url.endswith(("//", "///x"))
]
"""Where the pages of a public site redirect to."""
REFUSED: Final = {Code.ssrf_blocked, Code.InvalidInput, Code.dns_failed}
"""Causes of what is refused before any server is asked."""


class Site:
    """A server that sends bytes as they are: what a hostile one sends, no library would."""

    def __init__(self) -> None:
        self.host = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        kind, number = path.strip("/").split("/")
        if kind == "to":
            location = REDIRECTS[int(number)].encode("utf-8", "replace")
            writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
        else:
            body = BODIES[int(number)]
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + body.head + b"\r\n" + body.data)
        with suppress(ConnectionError):  # it has read enough
            await writer.drain()
        writer.close()

    @asynccontextmanager
    async def fetcher(self) -> AsyncIterator[Fetcher]:
        """Serve, and fetch from here alone."""
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        fetcher = Fetcher(private=(self.host,), resolve=numeric)
        try:
            yield fetcher
        finally:
            await fetcher.close()
            server.close()


async def numeric(host: str, port: int) -> list[str]:
    """The address that a host itself is, as this machine reads it; no name server is asked."""
    if host == "localhost":
        return ["127.0.0.1", "::1"]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return [str(place[0]) for *_, place in found]


async def cause_of(fetcher: Fetcher, url: str) -> Code | None:
    try:
        page = await fetcher.fetch(url, seconds=60, limit=LIMIT)
    except WebError as error:
        return error.cause
    return Code.content_too_large if page.truncated else None


async def test_no_way_of_writing_leads_to_an_address_that_is_not_public() -> None:
    async with Site().fetcher() as fetcher:
        urls = [*(f"http://{host}/latest/" for host in BLOCKED), *INVALID]
        assert [(url, cause) for url in urls if (cause := await cause_of(fetcher, url)) not in REFUSED] == []


async def test_a_redirect_leads_nowhere_that_a_url_would_not() -> None:
    site = Site()
    async with site.fetcher() as fetcher:
        found = [await cause_of(fetcher, f"http://{site.host}/to/{number}") for number in range(len(REDIRECTS))]
    assert [(url, cause) for url, cause in zip(REDIRECTS, found, strict=True) if cause not in REFUSED] == []


async def test_one_bad_answer_of_a_name_server_is_enough() -> None:
    wrong = []
    for addresses, wanted in ANSWERS:

        async def answered(_host: str, _port: int, addresses: tuple[str, ...] = addresses) -> list[str]:
            return list(addresses)

        fetcher = Fetcher(resolve=answered)
        cause = await cause_of(fetcher, "http://public.example/")
        await fetcher.close()
        if cause is not wanted:
            wrong.append((addresses, cause))
    assert wrong == []


async def test_no_answer_harms_its_reader() -> None:
    site = Site()
    async with site.fetcher() as fetcher:
        found = [await cause_of(fetcher, f"http://{site.host}/body/{number}") for number in range(len(BODIES))]
    wanted = [body.cause or (Code.content_too_large if body.truncated else None) for body in BODIES]
    names = [body.name for body in BODIES]
    assert [row for row in zip(names, wanted, found, strict=True) if row[1] is not row[2]] == []


def test_robots_files_mean_what_the_standard_says() -> None:
    wrong = [row for row in ROBOTS if parse(row.text, 0).allows(f"http://e.example{row.path}") is not row.allowed]
    assert [(row.text[:60], unquote(row.path)[:20]) for row in wrong] == []


def test_the_page_counts_the_rows() -> None:
    counts = {
        "addresses": len(BLOCKED) + len(INVALID),
        "redirects": len(REDIRECTS),
        "answers of name servers": len(ANSWERS),
        "bodies": len(BODIES),
        "robots files": len(ROBOTS),
    }
    assert sum(counts.values()) >= 200
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: int(count) for name, count in rows} == counts
