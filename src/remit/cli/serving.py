"""Opening a Remit for clients that connect, and serving it to them over stdio or HTTP."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from remit.cli import exit_codes
from remit.cli.wrapping import recorded
from remit.errors import RemitError, SettingsError, UsageError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.context import State
    from remit.cli.running import Stop
    from remit.clock import Clock
    from remit.http.access_log import AccessLog
    from remit.mcp_server.names import Names
    from remit.mcp_server.server import ToolServer

PORT: Final = 8_321


class Listening(NamedTuple):
    """Where to listen for clients over HTTP."""

    host: str
    port: int
    known_as: tuple[str, ...]
    access_log: str = ""
    """The file that a line for each request is appended to; `-` is stderr, empty is no log."""


class Offer(NamedTuple):
    """What is served."""

    names: Names
    flags: dict[str, Any]
    """Settings that the command line stands for."""
    work: bool
    """Whether jobs that clients start run here."""
    relayed: str = ""
    """The server whose prompts and resources are passed on as well."""


def http_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that can serve over HTTP: `over_http`, `host`, `port`, `known_as` and `access_log`."""
    for option in (
        click.option(
            "--access-log", metavar="FILE", help="With --http: append a JSON line for each request; - is stderr."
        ),
        click.option("--known-as", metavar="NAME", multiple=True, help="With --http: another host name clients use."),
        click.option("--port", metavar="N", type=click.IntRange(0, 65_535), default=PORT, help="With --http; 0: any."),
        click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="With --http: listen here."),
        click.option("--http", "over_http", is_flag=True, help="Serve many clients over streamable HTTP, not stdio."),
    ):
        function = option(function)
    return function


def serve(state: State, offer: Offer, listening: Listening | None) -> int:
    """Serve until the client goes, or until told to stop; the exit status."""
    from remit.cli.running import run_async

    if listening is None:
        if sys.stdin.isatty():
            state.note("waits for an MCP client on stdin; --http serves many")
        return run_async(lambda _stop: _one_client(state, offer))
    return run_async(lambda stop: _many_clients(state, offer, listening, stop), gentle=True)


async def _one_client(state: State, offer: Offer) -> int:
    async with _faced(state, offer, "stdio") as (_, face):
        from remit.mcp_server.stdio import serve_stdio

        await serve_stdio(face)
    return exit_codes.OK


async def _many_clients(state: State, offer: Offer, listening: Listening, stop: Stop) -> int:
    async with _faced(state, offer, "http") as (remit, face):
        from remit.http import serving
        from remit.http.guard import Guard
        from remit.http.router import Mount, Router
        from remit.mcp_server.endpoint import PATH, Endpoint
        from remit.settings.clients import bearer, clients

        known = clients(remit.settings)
        for warning in known.warnings:
            state.note(warning)
        tokens = [bearer(client, os.environ) for client in known.clients]
        guard = Guard.of(listening.host, listening.known_as, tokens, remit.clock)
        with access_log(listening, remit.clock) as log, socket_for(listening) as taken:
            app = Router(guard, [Mount(PATH, Endpoint(face), "call")], log)
            announce(state, listening, taken, PATH)
            who = ", ".join(sorted({client.principal for client in known.clients})) or "anyone on this machine"
            state.note(f"serves {who}; stop with Ctrl-C")
            await serving.serve(app, taken, stop.requested)
    return exit_codes.OK


@asynccontextmanager
async def _faced(state: State, offer: Offer, transport: str) -> AsyncIterator[tuple[Remit, ToolServer]]:
    try:
        from remit.mcp_server.server import ToolServer
    except ModuleNotFoundError as error:
        msg = f"{error.name} is not installed"
        raise SettingsError(msg, remedy="Install it: pip install 'remit[mcp]'") from error
    from remit.settings.principal import principal

    # An agent names the folders here.
    flags = recorded(state, {**offer.flags, "fs.search_anywhere": False})
    async with state.remit(creates=True, flags=flags) as remit:
        if offer.work and remit.settings.mcp.expose:
            remit.engine.start()
        state.note(f"records in {remit.url}")
        relay = await _relay(state, remit, offer.relayed) if offer.relayed else None
        who = principal(remit.settings)
        journal = flags.get("journal.url")
        confirm = shlex.join(["remit", "--journal", journal, "confirm"]) if journal else state.command("confirm")
        face = ToolServer(
            remit.service,
            offer.names,
            principal=who,
            transport=transport,
            relay=relay,
            confirm=confirm,
        )
        if relay is not None:
            relay.subscribe(face.changes.heard)
        try:
            yield remit, face
        finally:
            await face.close()


async def _relay(state: State, remit: Remit, server: str) -> Any:
    """What passes on the server's prompts and resources; None while it does not answer: its tools may come later."""
    from remit.mcp_server.relay import Relay

    try:
        status = await remit.service.servers.status(server)
    except RemitError as error:
        state.note(f"{error.message}; it is tried again when its tools are needed")
        return None
    return Relay(remit.service.servers.remote(server), remit.service.sessions, status.capabilities)


def announce(state: State, listening: Listening, taken: socket.socket, path: str) -> None:
    """Print the URL at once: the program that started this one may read it from a pipe."""
    shown = f"[{listening.host}]" if ":" in listening.host else listening.host
    state.output.out.line(f"http://{shown}:{taken.getsockname()[1]}{path}")
    state.output.out.flush()


@contextmanager
def access_log(listening: Listening, clock: Clock) -> Iterator[AccessLog | None]:
    """The log that was asked for, open within the block. Raise UsageError if its file cannot be opened."""
    from remit.http.access_log import AccessLog

    if not listening.access_log:
        yield None
    elif listening.access_log == "-":
        yield AccessLog(sys.stderr, clock)
    else:
        try:
            # Only the owner reads it: it says who did what. A line at a time, so that it can be followed.
            handle = os.open(listening.access_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise UsageError(f"--access-log: {listening.access_log}: {error.strerror or error}") from error
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            yield AccessLog(out, clock)


def socket_for(listening: Listening) -> socket.socket:
    """A socket that listens there. Raise UsageError if the address cannot be had."""
    from remit.http.serving import listen

    try:
        return listen(listening.host, listening.port)
    except OSError as error:
        why = f"cannot listen on {listening.host} port {listening.port}: {error.strerror or error}"
        raise UsageError(why, remedy="Choose another with --host or --port.") from error
