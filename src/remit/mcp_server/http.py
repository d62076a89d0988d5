"""Serving any number of clients over streamable HTTP: on loopback, or to who brings a token."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from remit.codes import Code
from remit.errors import SettingsError
from remit.mcp_server.endpoint import Endpoint
from remit.mcp_server.guard import LOOPBACK, Guard

if TYPE_CHECKING:
    from remit.mcp_server.face import Face
    from remit.settings.mcp_client import McpClient

KEPT_S: Final = 15
"""Seconds that a client's connection is kept for its next request: longer than clients keep theirs, as a rule."""
GRACE_S: Final = 2
"""Seconds for requests under way when the server stops."""


def application(face: Face, *, host: str, hosts: Sequence[str], clients: Sequence[McpClient]) -> Endpoint:
    """The ASGI application that answers at `/mcp`.

    `host` is where it listens, `hosts` are further names that clients may know it by; the tokens of `clients` are the
    expanded ones. Raises SettingsError where anybody on the network could call.
    """
    if host not in LOOPBACK and not clients:
        raise SettingsError(
            f"{host} can be reached by others, and nobody has a token",
            code=Code.SETTINGS_INVALID,
            remedy="Name who may connect in [[mcp.clients]], or listen on 127.0.0.1.",
        )
    names = [*(LOOPBACK if host in LOOPBACK else (host,)), *hosts]
    return Endpoint(face, Guard(names, clients))


async def serve(app: Endpoint, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve on a socket that listens, until told to stop; requests under way have `GRACE_S` to end."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEPT_S,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
    )
    server = _Server(config)
    async with app.running():
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            log = logging.getLogger("uvicorn.error")
            level = log.level
            log.setLevel(logging.CRITICAL)  # streams that clients keep open are cut off: that is no error
            app.hush()
            server.should_exit = True
            stopping.cancel()
            try:
                await serving
            finally:
                log.setLevel(level)


class _Server(uvicorn.Server):
    """Leaves signals to the process it runs in."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
