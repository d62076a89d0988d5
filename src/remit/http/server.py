"""Listening and serving: until the process is told to stop, and then no longer than the grace.

Closes connections that hold others up: a client that dribbles bytes, or opens many, holds nothing for long.

A connection whose request does not get past its headers is closed in time: uvicorn times out idle connections, but only
between requests, and one of its parsers takes headers of any length. If there are too many connections, a new one takes
the place of the oldest without a request under way, so that no client takes every descriptor of the process. A
connection counts from when it is accepted: its TLS handshake is made here, for asyncio tells of it only afterwards.

Serving over TLS: the certificate and key that the operator names.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from remit.codes import Code
from remit.errors import SettingsError
from remit.http.problem import KIND, HttpProblem, phrase
from remit.http.router import ABORT, AUTHORITY

if TYPE_CHECKING:
    from remit.http.router import ServerPart


HEAD_S: Final = 20.0
"""Seconds that the headers of a request may take to arrive."""
HEAD_BYTES: Final = 64 * 1024
"""The bytes of a request that are taken before its headers end; a little more if it comes at once."""


_MOST: Final = 4_096
_KEPT_BACK: Final = 256
"""Descriptors of the process that are not for clients: the journal, servers, programs."""


class Connections:
    """The connections that a server holds; what makes the protocol of each.

    A handshake, and the headers of each request, have so many seconds; `most` connections are held at once, 0 for as
    many as the descriptors of this process allow.
    """

    def __init__(self, head_s: float, most: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.head_s = head_s
        self.tls = tls
        self._most = most or _allowed()
        self._open: dict[_Patient, None] = {}

    @property
    def protocol(self) -> type[asyncio.Protocol]:
        """Makes uvicorn's protocol for a connection."""
        parser: Any = type("Parser", (_Target, AutoHTTPProtocol), {})
        return cast("type[asyncio.Protocol]", lambda *args, **options: _Patient(self, parser(*args, **options)))

    def add(self, connection: _Patient) -> None:
        """A connection was accepted; the oldest without a request under way gives its place if there are too many."""
        self._open[connection] = None
        if len(self._open) > self._most:
            next((other for other in self._open if other.idle), connection).close()

    def remove(self, connection: _Patient) -> None:
        """A connection has ended."""
        self._open.pop(connection, None)

    def close(self) -> None:
        """End all that are open, at once."""
        for connection in list(self._open):
            connection.close()


class _Target:
    """Tells of a target that is a whole URL (RFC 9112, section 3.2.2), of which httptools passes on the path alone.

    To h11 all of it is the path, and this is not called.
    """

    url: bytes
    scope: dict[str, Any]
    transport: asyncio.Transport

    def on_headers_complete(self) -> None:
        self.scope[ABORT] = self.transport.abort
        if not self.url.startswith(b"/"):
            self.scope[AUTHORITY] = self.url.partition(b"://")[2].partition(b"/")[0]
        cast("Any", super()).on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: that a client asks for a WebSocket is its own affair, and the answer tells it."""


class _Patient(asyncio.Protocol):
    """Passes on what a connection brings."""

    def __init__(self, connections: Connections, inner: Any) -> None:
        self._connections = connections
        self._head_s = connections.head_s
        self._inner = inner
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._early = b""
        """Sent with the end of the handshake."""
        self._began = False
        self._head = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._connections.tls is None:
            self._inner.connection_made(transport)
        else:
            self._transport.pause_reading()
            self._handshake = self._loop.create_task(self._secure(self._transport, self._connections.tls))
        self._timer = self._loop.call_later(self._head_s, self._late)
        self._connections.add(self)

    @property
    def idle(self) -> bool:
        """Return whether no request is under way."""
        cycle = self._inner.cycle
        return cycle is None or bool(cycle.response_complete)

    def close(self) -> None:
        """End the connection at once."""
        self._connections.remove(self)
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._handshake is not None:
            self._early += data
            return
        self._began = True
        self._inner.data_received(data)
        self._head = self._head + len(data) if self._in_head() else 0
        if self._head > HEAD_BYTES:
            self._refuse(HttpProblem(Code.REQUEST_TOO_LARGE, f"The headers are larger than {HEAD_BYTES} bytes."))
            return
        if not self.idle:
            self._rest()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._head_s, self._late)

    def eof_received(self) -> None:
        self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        self._connections.remove(self)
        if self._handshake is None:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """Make the handshake, and then begin as a connection without TLS does."""
        try:
            secured = await self._loop.start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=self._head_s
            )
        except OSError:  # no TLS, an old one, too late, or gone
            secured = None
        if secured is None or secured.is_closing():
            self.connection_lost(None)
            return
        self._handshake, early, self._early = None, self._early, b""
        self._transport = secured
        self._inner.connection_made(secured)
        if early:
            self.data_received(early)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _in_head(self) -> bool:
        """Return whether a request has begun of which not all headers are there."""
        cycle, scope = self._inner.cycle, self._inner.scope
        return scope is not None and (cycle is None or cycle.scope is not scope)

    def _late(self) -> None:
        self._timer = None
        self._refuse(HttpProblem(Code.HEAD_TIMEOUT, f"The headers did not arrive within {self._head_s:g} s."))

    def _refuse(self, problem: HttpProblem) -> None:
        self._rest()
        if self._transport is not None and not self._transport.is_closing():
            if self._began:
                self._transport.write(_answer(problem))
            self._transport.close()


def _allowed() -> int:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if descriptors == resource.RLIM_INFINITY else max(64, min(_MOST, descriptors - _KEPT_BACK))


def _answer(problem: HttpProblem) -> bytes:
    head = f"HTTP/1.1 {problem.status} {phrase(problem.status)}\r\ncontent-type: {KIND}\r\n"
    head += "cache-control: no-store\r\n"
    return f"{head}content-length: {len(problem.body)}\r\nconnection: close\r\n\r\n".encode() + problem.body


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
    app: ServerPart,
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


def server_context(cert: str, key: str = "") -> ssl.SSLContext:
    """Return what encrypts the connections that are accepted, with TLS 1.2 or newer.

    `cert` is a PEM file with the certificate, then those between it and its authority; `key` is one with its private
    key, which may stand in `cert` as well. Raises SettingsError if they cannot be used; nothing of a key is quoted.
    """
    if not cert:
        raise SettingsError(
            "serve.tls_key is set without a certificate", remedy="Set serve.tls_cert to the certificate."
        )
    for path in filter(None, (cert, key)):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise SettingsError(
                f"{path} cannot be read: {error.strerror or error}", remedy="Correct serve.tls_cert and serve.tls_key."
            ) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password of its own, OpenSSL would ask for one at the terminal.
        context.load_cert_chain(cert, key or None, password="")
    except (ssl.SSLError, OSError) as error:
        reason = "the certificate and its key cannot be used"
        remedy = "Use a PEM certificate and its private key, without a password."
        raise SettingsError(f"{cert}: {reason}: {getattr(error, 'reason', None) or error}", remedy=remedy) from error
    return context
