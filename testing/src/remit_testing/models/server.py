"""A server on loopback that answers as a model's provider would, well or badly, byte for byte."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, NamedTuple

import msgspec

from remit_testing.models.scene import Canned, sse

_MAX_HEAD = 64 * 1024
_NEVER_LINGER = struct.pack("ii", 1, 0)


class Streamed(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of events."""

    events: list[bytes]
    """Data of each."""
    ends: Literal["well", "eof", "reset", "never"] = "well"
    """The way that the connection ends after them: the response, only the connection, with a reset, or not at all."""
    head: bytes = b""
    """Sent before the first event, such as a comment."""
    newline: bytes = b"\n"
    chunk_bytes: int = 0
    """The number of bytes that are sent at once; 0: each event at once."""


class Received(NamedTuple):
    """A request that came."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any
    """JSON value."""
    raw: bytes


Response = Streamed | Canned
Answers = Callable[[Received], Response]


class ModelServer:
    """The server: each request is answered by what `answers` returns for it."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.received: list[Received] = []
        self.left = asyncio.Event()
        """A client closed its connection before its answer ended."""
        self.url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[ModelServer]:
        """Serve on a free port within the block."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MAX_HEAD)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._tasks: set[asyncio.Task[Any]] = set()
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                while await self._answer(reader, writer):
                    pass
            finally:
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        request = await _read(reader)
        self.received.append(request)
        response = self.answers(request)
        if isinstance(response, Canned):
            writer.write(_canned(response))
            await writer.drain()
            return True
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n")
        writer.write(b"x-request-id: req_1\r\nrequest-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n")
        try:
            await self._stream(response, writer)
        except ConnectionError:
            self.left.set()
            raise
        if response.ends == "never":
            await reader.read()
            self.left.set()
        elif response.ends == "reset":
            _reset(writer)
        return response.ends == "well"

    async def _stream(self, response: Streamed, writer: asyncio.StreamWriter) -> None:
        parts = [response.head, *map(sse, response.events)]
        body = [part.replace(b"\n", response.newline) for part in parts if part]
        if response.chunk_bytes:
            whole, step = b"".join(body), response.chunk_bytes
            body = [whole[start : start + step] for start in range(0, len(whole), step)]
        for part in body:
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            if response.chunk_bytes or len(part) > _MAX_HEAD:
                await writer.drain()
        if response.ends == "well":
            writer.write(b"0\r\n\r\n")
        await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NEVER_LINGER)
    writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    path = head[0].split(" ")[1]
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(path, headers, msgspec.json.decode(raw) if raw else None, raw)


def _canned(response: Canned) -> bytes:
    headers = {"content-type": "application/json", "content-length": str(len(response.body)), **response.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {response.status} Canned\r\n{lines}\r\n".encode() + response.body
