"""`remit mcp login`: a person logs in to a server."""

from __future__ import annotations

import asyncio
import webbrowser
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.cli.servers import complete_servers
from remit.errors import UsageError
from remit.tools.remote import LOGIN_PORT, Authorized

if TYPE_CHECKING:
    from remit.tools.remote import RemoteStatus


@click.command("login")
@click.argument("name", shell_complete=complete_servers)
@json_option("who answered")
@pass_state
def command(state: State, name: str) -> int:
    """Log in to a server that uses OAuth.

    The server's entry in remit.toml needs an `oauth` table. Your browser opens the server's login page and returns to
    this machine; you have two minutes. Tokens are kept in a folder that only you can read, and are refreshed
    automatically.
    """
    from remit.cli.running import run_to_end

    status = run_to_end(_log_in(state, name))
    if state.as_json:
        state.output.json(status)
    else:
        out = state.output.out
        out.line(f"{out.style('ok', 'ok')} logged in: {status.name} {status.version}, {status.tools} tools")
    return exit_codes.OK


async def _log_in(state: State, name: str) -> RemoteStatus:
    from remit.cli.logs import log_to_stderr
    from remit.wiring.runtime import open_runtime

    log_to_stderr(state.verbose)
    runtime = open_runtime(state.trusted({"journal.url": ":memory:"}), authorizer=Browser(state))
    try:
        return await runtime.service.servers.status(name)
    finally:
        await runtime.close()


_PAGE: Final = b"<!doctype html><title>Remit</title><p>You are logged in. You can close this page.\n"
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
_MAX_LINE: Final = 16_384


class Browser:
    """Shows the page, and listens on loopback for the way back (RFC 8252)."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._back: asyncio.Future[Authorized] | None = None

    async def redirect(self, url: str) -> None:
        """Open the page, and show its address: the browser may be on another machine."""
        self._back = asyncio.get_running_loop().create_future()
        self._state.output.err.line(f"log in here: {url}")
        await asyncio.to_thread(webbrowser.open, url)

    async def callback(self) -> Authorized:
        """Return its answer, without a code where the person refused. Raises UsageError where nothing is heard."""
        if self._back is None:
            raise UsageError("login callback received before a login was started")
        try:
            server = await asyncio.start_server(self._answer, "127.0.0.1", LOGIN_PORT, limit=_MAX_LINE)
        except OSError as error:
            raise UsageError(
                f"the login the login port {LOGIN_PORT} is in use: {error.strerror}",
                remedy="Stop the program that uses it, then log in again.",
            ) from error
        async with server:
            return await self._back

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readline()).decode("ascii", "replace").split()
        given = parse_qs(urlsplit(words[1]).query) if len(words) > 1 else {}
        writer.write(_HEAD % len(_PAGE) + _PAGE)
        await writer.drain()
        writer.close()
        if self._back is not None and not self._back.done() and ("code" in given or "error" in given):
            self._back.set_result(Authorized(_first(given, "code") or "", _first(given, "state"), _first(given, "iss")))


def _first(given: dict[str, list[str]], name: str) -> str | None:
    return given[name][0] if given.get(name) else None
