"""Listening and serving: until the process is told to stop, and then no longer than the grace."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from remit.http.patience import HEAD_S, Connections

if TYPE_CHECKING:
    from remit.http.router import Part

KEPT_S: Final = 15
"""Seconds that a client's connection is kept for its next request: longer than clients keep theirs, as a rule."""
GRACE_S: Final = 2
"""Seconds for requests under way when the server stops."""
ACCEPTED: Final = 64
"""Connections that are accepted before others have given way to them: far fewer than the descriptors kept back."""
WAITING: Final = 2_048
"""Connections that the system keeps until they are accepted."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 lets the system choose. Raises OSError.

    It names its protocol, and so do the connections that it accepts: asyncio sets TCP_NODELAY only on those. Without
    that, each answer on a kept connection waits 40 ms for the client's delayed acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen()
    except BaseException:
        listening.close()
        raise
    return listening


async def serve(
    app: Part,
    listening: socket.socket,
    stop: asyncio.Event,
    *,
    tls: ssl.SSLContext | None = None,
    head_s: float = HEAD_S,
    most: int = 0,
    drain_s: float = 0,
) -> None:
    """Serve on a socket of `listen` until `stop` is set; requests under way have `GRACE_S` to end.

    Before that it goes on for `drain_s` seconds, and every answer ends its connection, so that clients come back over
    new ones, which a balancer gives to other servers meanwhile.

    With `tls` connections are encrypted. The headers of a request have `head_s` seconds to arrive. There are `most`
    connections at once; 0: as many as the descriptors of this process allow.
    """
    connections = Connections(head_s, most, tls)
    config = uvicorn.Config(
        app,
        http=connections.protocol,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEPT_S,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        backlog=ACCEPTED,
    )
    server = _Server(config)
    async with app.running():
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if drain_s and not serving.done():
                server.end_connections()
                await asyncio.wait({serving}, timeout=drain_s)
        finally:
            log = logging.getLogger("uvicorn.error")
            level = log.level
            log.setLevel(logging.CRITICAL)  # streams that clients keep open are cut off: that is not an error
            app.close_streams()
            server.should_exit = True
            stopping.cancel()
            try:
                await serving
            finally:
                connections.close()
                log.setLevel(level)


class _Server(uvicorn.Server):
    """Leaves signals to the process it runs in, and lets many connections wait to be accepted."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(WAITING)

    def end_connections(self) -> None:
        """Have every answer from now on end its connection."""
        end = (b"connection", b"close")
        self.config.encoded_headers.append(end)
        self.server_state.default_headers.append(end)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
