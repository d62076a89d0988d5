from __future__ import annotations

import asyncio
import webbrowser

import pytest

from remit.cli.commands.mcp import login
from remit.cli.commands.mcp.login import Browser
from remit.cli.context import State
from remit.errors import UsageError
from remit.tools.remote import Authorized


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    pages: list[str] = []
    monkeypatch.setattr(webbrowser, "open", pages.append)
    monkeypatch.setattr(login, "LOGIN_PORT", 0)
    return pages


async def came_back(shown: Browser, monkeypatch: pytest.MonkeyPatch, *targets: str) -> Authorized:
    """What is heard when a browser asks for these targets, one after another."""
    listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    real = asyncio.start_server

    async def start(*args: object, **options: object) -> asyncio.Server:
        server: asyncio.Server = await real(*args, **options)  # type: ignore[arg-type]
        listening.set_result(server.sockets[0].getsockname()[1])
        return server

    monkeypatch.setattr(asyncio, "start_server", start)
    waiting = asyncio.create_task(shown.callback())
    port = await listening
    for target in targets:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {target} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await reader.read()
        writer.close()
        await writer.wait_closed()
    return await waiting


async def test_the_page_is_opened_and_shown(opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    await Browser(State()).redirect("https://login.example/?a=1")
    assert opened == ["https://login.example/?a=1"]
    assert "https://login.example/?a=1" in capsys.readouterr().err


async def test_what_the_browser_brings_back_is_heard(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Browser(State())
    await shown.redirect("https://login.example")
    found = await came_back(shown, monkeypatch, "/callback?code=c&state=s&iss=https%3A%2F%2Flogin.example")
    assert found == Authorized("c", "s", "https://login.example")


async def test_what_brings_no_code_is_passed_over(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Browser(State())
    await shown.redirect("https://login.example")
    found = await came_back(shown, monkeypatch, "/favicon.ico", "/callback?code=c")
    assert found == Authorized("c")


async def test_a_refusal_comes_back_without_a_code(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Browser(State())
    await shown.redirect("https://login.example")
    assert await came_back(shown, monkeypatch, "/callback?error=access_denied&state=s") == Authorized("", "s")


async def test_nobody_comes_back_who_was_never_sent() -> None:
    with pytest.raises(UsageError):
        await Browser(State()).callback()
