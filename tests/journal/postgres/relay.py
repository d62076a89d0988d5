"""A line to the server that can be cut in the middle of a commit."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, Literal

Cut = Literal["", "before", "after", "held"]
"""What happens to the next group of commits: it never reaches the server; its answer never reaches the client; or the
client loses the connection, and the server gets the group later, when `release` is called."""

_COMMITS: Final = b"SELECT done("
_BYTES: Final = 1 << 20


class Relay:
    """Stands between client and server, on sockets."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.cut: Cut = ""
        self.cuts = 0
        self.refusing = False
        self._server = server
        self._held: list[tuple[asyncio.StreamWriter, bytes]] = []
        self._kept: set[asyncio.StreamWriter] = set()
        """Ends that stay open for what is held."""
        self.serving: set[asyncio.Task[Any]] = set()
        self._open: set[asyncio.StreamWriter] = set()

    async def release(self) -> None:
        """What was held reaches the server now."""
        for writer, data in self._held:
            writer.write(data)
            await writer.drain()
        self._held.clear()

    def cut_all(self) -> None:
        """Every connection is lost at once."""
        for writer in self._open | self._kept:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        if self.refusing:
            writer.transport.abort()
            return
        upstream, server = await asyncio.open_unix_connection(str(self._server))
        ends = (writer, server)
        self._open.update(ends)
        answering = asyncio.create_task(self._pass_on(upstream, writer))
        commits = False
        try:
            while data := await reader.read(_BYTES):
                # Once a statement is prepared, it is known by a name of the driver's.
                commits = commits or _COMMITS in data
                if commits and self.cut:
                    how, self.cut, self.cuts = self.cut, "", self.cuts + 1
                    if how == "held":
                        self._held.append((server, data))
                        self._kept.add(server)
                        answering.cancel()
                        writer.transport.abort()
                        return
                    if how == "after":
                        answering.cancel()
                        server.write(data)
                        await upstream.read(_BYTES)
                    return
                server.write(data)
        except ConnectionError:
            return
        finally:
            for end in self._open.intersection(ends) - self._kept:
                end.transport.abort()
            self._open.difference_update(ends)
            with contextlib.suppress(asyncio.CancelledError):
                await answering

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_BYTES):
                writer.write(data)
        writer.transport.abort()


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
