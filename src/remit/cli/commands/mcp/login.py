"""`remit mcp login`: a person logs in to a server.

`remit mcp logout`: forget a login.
"""

from __future__ import annotations

import asyncio
import webbrowser
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.servers import by_url, complete_servers, login_file, meant, server_of
from remit.errors import UsageError
from remit.settings.principal import principal
from remit.tools.remote import LOGIN_PORT, Authorized

if TYPE_CHECKING:
    from remit.settings.mcp import McpServer
    from remit.tools.remote import RemoteStatus


@click.command("login")
@click.argument("name", required=False, shell_complete=complete_servers)
@by_url
@json_option("who answered")
@pass_state
def login(state: CommandState, name: str | None, url: str, given_name: str, issuers: tuple[str, ...]) -> int:
    """Log in to a server that uses OAuth.

    The server's entry in remit.toml needs an `oauth` table; a server that only `remit mcp wrap --url` knows needs its
    URL. Your browser opens the server's login page and returns to this machine; you have two minutes. Tokens are kept
    in a folder that only you can read, and are refreshed automatically.
    """
    from remit.cli.runner import run_to_end

    name, flags = meant(state, name, url, given_name, issuers)
    _check_login(server_of(state.settings(flags), name))
    status = run_to_end(_log_in(state, name, flags))
    return state.done(status, f"logged in: {status.name} {status.version}, {status.tools} tools")


def _check_login(server: McpServer) -> None:
    """Refuse a server that has no login. Raises UsageError."""
    if server.url and server.oauth is None:
        remedy = "Write oauth = {} into its table in remit.toml. A key that it takes goes into headers, as ${NAME}."
        raise UsageError(f"{server.name} has no oauth table, so no one logs in to it", remedy=remedy)
    if server.oauth is None:
        remedy = "Give it what it needs in its env, as ${NAME}, or log in with the program itself."
        raise UsageError(f"{server.name} is a program that is started here, and no one logs in to it", remedy=remedy)


async def _log_in(state: CommandState, name: str, flags: dict[str, Any]) -> RemoteStatus:
    from remit.cli.logs import log_to_stderr
    from remit.wiring.runtime import open_runtime

    log_to_stderr(state.verbose)
    runtime = open_runtime(state.trusted({**flags, "journal.url": ":memory:"}), authorizer=Browser(state))
    try:
        return await runtime.service.servers.status(name)
    finally:
        await runtime.close()


_DONE: Final = "You are logged in, if the terminal says so. You can close this page."
_STRANGE: Final = "This is not the answer to a login that was begun here."
_PAGE: Final = "<!doctype html><title>Remit</title><p>{}\n"
_HEAD: Final = "HTTP/1.1 {}\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n"
_MAX_LINE: Final = 16_384
_ELSEWHERE: Final = (
    f"on another machine: forward the port there first, ssh -L {LOGIN_PORT}:127.0.0.1:{LOGIN_PORT} THIS-MACHINE"
)


class Browser:
    """Shows the page, and listens on loopback for the way back (RFC 8252)."""

    def __init__(self, state: CommandState) -> None:
        self._state = state
        self._back: asyncio.Future[Authorized] | None = None
        self._listening: asyncio.Server | None = None
        self._expected = ""

    async def redirect(self, url: str) -> None:
        self._back = asyncio.get_running_loop().create_future()
        self._expected = _first(parse_qs(urlsplit(url).query), "state") or ""
        try:
            self._listening = await asyncio.start_server(self._answer, "127.0.0.1", LOGIN_PORT, limit=_MAX_LINE)
        except OSError as error:
            raise UsageError(
                f"the login port {LOGIN_PORT} is in use: {error.strerror}",
                remedy="Stop the program that uses it, then log in again.",
            ) from error
        self._state.output.err.line(f"log in here: {url}")
        if not await asyncio.to_thread(webbrowser.open, url):
            self._state.output.err.line(f"no browser was opened: open the page yourself; {_ELSEWHERE}")

    async def callback(self) -> Authorized:
        if self._back is None or self._listening is None:
            raise UsageError("login callback received before a login was started")
        async with self._listening:
            return await self._back

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request. Any page can send a browser here: only what brings this login's state ends the wait."""
        words = (await reader.readline()).decode("ascii", "replace").split()
        query = parse_qs(urlsplit(words[1]).query) if len(words) > 1 else {}
        state = _first(query, "state")
        ours = compare_digest(state or "", self._expected) and ("code" in query or "error" in query)
        body = _PAGE.format(_DONE if ours else _STRANGE)
        writer.write((_HEAD.format("200 OK" if ours else "400 Bad Request", len(body)) + body).encode())
        await writer.drain()
        writer.close()
        if ours and self._back is not None and not self._back.done():
            self._back.set_result(Authorized(_first(query, "code") or "", state, _first(query, "iss")))


def _first(query: dict[str, list[str]], name: str) -> str | None:
    return query[name][0] if query.get(name) else None


@click.command("logout")
@click.argument("name", required=False, shell_complete=complete_servers)
@by_url
@json_option("whether there was a login")
@pass_state
def logout(state: CommandState, name: str | None, url: str, given_name: str, issuers: tuple[str, ...]) -> int:
    """Forget the login at a server.

    Removes the tokens and the registration that this machine keeps; the server is not asked. To end what the tokens
    allow before they expire, take Remit's access back in your account at the server.
    """
    from remit.cli.runner import run_to_end

    name, flags = meant(state, name, url, given_name, issuers)
    settings = state.settings(flags)
    there = run_to_end(login_file(server_of(settings, name), principal(settings)).remove())
    if not there:
        state.note(f"there is no login at {name}")
    if there or state.as_json:
        state.done({"name": name, "removed": there}, f"logged out of {name}")
    return exit_codes.OK
