"""The only way out of a sandbox: an HTTP proxy that lets an allow-list through, to public addresses alone.

It answers CONNECT, behind which a program speaks TLS to the host itself, and plain requests in absolute form (RFC 9112,
section 3.2.2), one for each connection. It never follows a name to another address than the one that was judged.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from remit.http.addresses import AddressPlace, BlockedAddressError, Resolver, reachable, resolved
from remit.parts.sandbox.policy import allowed
from remit.process.enclosure import ConnectionAttempt
from remit.tasks import Tasks

_HEAD: Final = 32 * 1024
_PATIENCE_S: Final = 20.0
_LISTED: Final = 200
_AT_ONCE: Final = 128
"""Connections of one run at once: each holds two descriptors of this process."""
_CHUNK: Final = 64 * 1024
_LEFT_OUT: Final = frozenset({"proxy-connection", "proxy-authorization", "connection", "keep-alive", "host"})


class _Target(NamedTuple):
    host: str
    port: int
    head: bytes
    """The bytes that the host is sent first; empty for CONNECT."""


class _RefusedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(reason)


class Proxy:
    """The proxy of one run: hosts of the entries pass, `private` ones to any address; `listener` is told of each."""

    def __init__(
        self,
        entries: tuple[str, ...],
        resolve: Resolver | None = None,
        *,
        private: tuple[str, ...] = (),
        listener: Callable[[ConnectionAttempt], None] | None = None,
    ) -> None:
        self.connections: list[ConnectionAttempt] = []
        self._entries = entries
        self._private = private
        self._listener = listener or (lambda _: None)
        self._resolve = resolve or resolved
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()

    async def serve(self, listening: socket.socket) -> None:
        """Answer on a socket, which is then ours."""
        self._server = await asyncio.start_server(self._serve, sock=listening, limit=_HEAD)

    async def close(self) -> None:
        """Cut every connection."""
        if self._server is not None:
            self._server.close()
        self._tasks.cancel()
        await self._tasks.ended()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.keep(task)
        try:
            if len(self._tasks) > _AT_ONCE:
                raise _RefusedError(503, f"more than {_AT_ONCE} connections at once")
            await self._answer(reader, writer)
        except _RefusedError as error:
            with suppress(OSError):
                writer.write(_response(error.status, str(error)))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one of both sides is gone
        except asyncio.CancelledError:
            pass  # the run is over
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
        target = _asked(head)
        connection = ConnectionAttempt(host=target.host, port=target.port)
        if len(self.connections) < _LISTED:
            self.connections.append(connection)
        try:
            ours, theirs = await self._reached(target)
        except _RefusedError as error:
            connection.allowed, connection.reason = error.status != 403, str(error)  # noqa: PLR2004 - Forbidden
            self._listener(connection)
            raise
        self._listener(connection)
        try:
            if target.head:
                theirs.write(target.head)
                connection.sent += len(target.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_pump(reader, theirs, connection, "sent"), _pump(ours, writer, connection, "received"))
        finally:
            theirs.close()

    async def _reached(self, target: _Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                places = await self._places(target.host, target.port)
                return await asyncio.open_connection(places[0].address, places[0].port)
        except BlockedAddressError as error:
            raise _RefusedError(403, str(error)) from error
        except (OSError, TimeoutError) as error:
            raise _RefusedError(502, f"{target.host} cannot be reached: {error}") from error

    async def _places(self, host: str, port: int) -> list[AddressPlace]:
        if f"{host}:{port}" in self._private:
            return [AddressPlace(address, port) for address in await self._resolve(host, port)]
        if not allowed(self._entries, host, port):
            raise _RefusedError(403, f"{host}:{port} is not an allowed host")
        return await reachable(host, port, self._resolve)


def _asked(head: bytes) -> _Target:
    try:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, version = first.split(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError(version)
        if method == "CONNECT":
            url = urlsplit(f"//{target}")
            return _Target(url.hostname or "", url.port or 443, b"")
        url = urlsplit(target)
        if url.scheme != "http" or not url.hostname:
            raise ValueError(target)
    except ValueError as error:
        raise _RefusedError(400, "this proxy takes CONNECT and requests for http:// only") from error
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    headers = [line for line in lines if line and line.partition(":")[0].strip().lower() not in _LEFT_OUT]
    # The host that was judged, whatever the program wrote there (RFC 9112, section 3.2.2).
    host = url.netloc.rpartition("@")[2]
    text = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", ""])
    return _Target(url.hostname, url.port or 80, text.encode("latin-1"))


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: ConnectionAttempt, count: str
) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            setattr(connection, count, getattr(connection, count) + len(data))
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _response(status: int, reason: str) -> bytes:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    return f"{head}\r\n\r\n".encode() + body
