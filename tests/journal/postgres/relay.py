"""A line to the server that can be cut in the middle of a commit, or fall silent."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, Literal

Cut = Literal["", "before", "after", "held", "silent"]
"""What happens to the next group of commits: it never reaches the server; the server writes it, and its answer never
reaches the client; the client loses the connection, and the server gets the group later, when `release` is called; or
the server writes it, and nothing comes through from then on.
"""

_COMMITS: Final = b"SELECT done("
_PREPARE, _EXECUTE = b"P", b"B"
"""How the driver's messages begin: a statement and a name for it; a name, and its arguments."""
_WRITTEN: Final = b"s\x00\x00\x00\x04Z\x00\x00\x00\x05I"
"""How the answer to a group ends: there was a row, and the server is ready for more, which it says after the commit."""
_BYTES: Final = 1 << 20


class Line:
    """One connection of a client, and the one to the server behind it."""

    def __init__(self, relay: Relay, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._relay = relay
        self._client = client
        self._server = server
        self._groups: set[bytes] = set()
        """Names of the statements that write one."""
        self._cut: Cut = ""
        self.silent = False

    async def ask(self, client: asyncio.StreamReader) -> None:
        """Pass on what the client sends, until it is cut."""
        while data := await _read(client):
            names = data[5:].split(b"\0", 2)
            if data.startswith(_PREPARE) and names[1].startswith(_COMMITS):
                self._groups.add(names[0])
            if data.startswith(_EXECUTE) and names[1] in self._groups:
                self._cut, self._relay.cut = self._relay.cut, ""
            if self._cut == "held":
                self._relay.cuts += 1
                self._relay.held.append((self._server, data))
                self._client.transport.abort()
                return
            if self._cut == "before":
                self._relay.cuts += 1
                break
            if not self.silent:
                self._server.write(data)
        self.abort()

    async def answer(self, server: asyncio.StreamReader) -> None:
        """Pass on what the server says, except to a group of commits whose answer is to be lost."""
        while data := await _read(server):
            if self._cut == "held":
                continue
            if self._cut == "after":
                self._relay.cuts += data.endswith(_WRITTEN)
                break
            if self._cut == "silent" and not self.silent:
                self._relay.cuts += data.endswith(_WRITTEN)
                self.silent = True
            if not self.silent:
                self._client.write(data)
        self.abort()

    def abort(self) -> None:
        """Both ends are lost at once; what the server got, it goes on with."""
        for end in (self._client, self._server):
            end.transport.abort()


class Relay:
    """Stands between clients and server, on sockets."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.cut: Cut = ""
        self.cuts = 0
        """So many fell as they should."""
        self.refusing = False
        self.held: list[tuple[asyncio.StreamWriter, bytes]] = []
        self.serving: set[asyncio.Task[Any]] = set()
        self._server = server
        self._lines: set[Line] = set()

    async def release(self) -> None:
        """What was held reaches the server now."""
        for writer, data in self.held:
            writer.write(data)
            await writer.drain()
        self.held.clear()

    def cut_all(self) -> None:
        """Every connection is lost at once."""
        for line in self._lines:
            line.abort()

    def silence(self) -> None:
        """Nothing comes through the connections there are any more, and nobody is told; new ones work."""
        for line in self._lines:
            line.silent = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes over one connection, both ways."""
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        if self.refusing:
            writer.transport.abort()
            return
        upstream, server = await asyncio.open_unix_connection(str(self._server))
        line = Line(self, writer, server)
        self._lines.add(line)
        await asyncio.gather(line.ask(reader), line.answer(upstream))
        self._lines.discard(line)


async def _read(reader: asyncio.StreamReader) -> bytes:
    """What comes next; nothing where the connection is lost."""
    try:
        return await reader.read(_BYTES)
    except ConnectionError:
        return b""


@contextlib.asynccontextmanager
async def relay(server: Path) -> AsyncIterator[Relay]:
    """A relay to the server whose socket is in a folder; its own socket is in `folder`."""
    with tempfile.TemporaryDirectory(prefix="remit-relay-", dir="/tmp") as name:
        one = Relay(Path(name), server / ".s.PGSQL.5432")
        listening = await asyncio.start_unix_server(one.serve, str(one.folder / ".s.PGSQL.5432"))
        try:
            yield one
        finally:
            listening.close()
            one.cut_all()
            await asyncio.gather(*one.serving)
