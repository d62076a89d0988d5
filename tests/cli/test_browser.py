from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import AsyncIterator

import pytest

from remit.cli.commands.mcp import login
from remit.cli.commands.mcp.login import Browser
from remit.cli.context import CommandState
from remit.errors import UsageError
from remit.tools.remote import Authorized


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    pages: list[str] = []

    def open_page(url: str) -> bool:
        pages.append(url)
        return "nowhere" not in url

    monkeypatch.setattr(webbrowser, "open", open_page)
    monkeypatch.setattr(login, "LOGIN_PORT", 0)
    return pages


@pytest.fixture
async def ports(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """Where is listened, in order; nobody listens in the end."""
    found: list[int] = []
    servers: list[asyncio.Server] = []
    real = asyncio.start_server

    async def start(*args: object, **options: object) -> asyncio.Server:
        server: asyncio.Server = await real(*args, **options)  # type: ignore[arg-type]
        found.append(server.sockets[0].getsockname()[1])
        servers.append(server)
        return server

    monkeypatch.setattr(asyncio, "start_server", start)
    yield found
    for server in servers:
        server.close()
        await server.wait_closed()


async def came_back(shown: Browser, port: int, *targets: str, strange: int = 0) -> Authorized:
    """What is heard when a browser asks for these targets, one after another; the first `strange` are refused."""
    waiting = asyncio.create_task(shown.callback())
    for number, target in enumerate(targets):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {target} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 400" if number < strange else b"HTTP/1.1 200")
        await reader.read()
        writer.close()
        await writer.wait_closed()
    return await waiting


async def test_the_page_is_opened_and_shown(
    opened: list[str], ports: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    await Browser(CommandState()).redirect("https://login.example/?a=1")
    assert opened == ["https://login.example/?a=1"]
    assert "https://login.example/?a=1" in capsys.readouterr().err


async def test_where_no_browser_opens_a_person_is_told_how_to_come_back(
    opened: list[str], ports: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    await Browser(CommandState()).redirect("https://nowhere.example/?state=s")
    assert "ssh -L" in capsys.readouterr().err


async def test_what_the_browser_brings_back_is_heard(opened: list[str], ports: list[int]) -> None:
    shown = Browser(CommandState())
    await shown.redirect("https://login.example?state=s")
    found = await came_back(shown, ports[0], "/callback?code=c&state=s&iss=https%3A%2F%2Flogin.example")
    assert found == Authorized("c", "s", "https://login.example")


async def test_what_belongs_to_no_login_of_ours_is_refused(opened: list[str], ports: list[int]) -> None:
    """A page that sends the browser here neither logs a person in as someone else, nor ends their login."""
    shown = Browser(CommandState())
    await shown.redirect("https://login.example?state=s")
    strange = ("/favicon.ico", "/callback?code=evil", "/callback?code=evil&state=t", "/callback?error=x&state=")
    found = await came_back(shown, ports[0], *strange, "/callback?code=c&state=s", strange=4)
    assert found == Authorized("c", "s")


async def test_a_refusal_comes_back_without_a_code(opened: list[str], ports: list[int]) -> None:
    shown = Browser(CommandState())
    await shown.redirect("https://login.example?state=s")
    assert await came_back(shown, ports[0], "/callback?error=access_denied&state=s") == Authorized("", "s")


async def test_a_browser_that_is_fast_finds_someone_who_listens(opened: list[str], ports: list[int]) -> None:
    shown = Browser(CommandState())
    await shown.redirect("https://login.example?state=s")
    reader, writer = await asyncio.open_connection("127.0.0.1", ports[0])
    writer.write(b"GET /callback?code=c&state=s HTTP/1.1\r\n\r\n")
    await reader.read()
    writer.close()
    assert await shown.callback() == Authorized("c", "s")


async def test_nobody_comes_back_who_was_never_sent() -> None:
    with pytest.raises(UsageError):
        await Browser(CommandState()).callback()
