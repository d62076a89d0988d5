"""A small TCP balancer on loopback: each connection goes to the next server whose /health says that it takes work."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_BYTES = 1 << 16
_PROBE = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


class Balancer:
    """Passes connections on."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        """The ports of the servers, the next one first."""
        self.connections = Counter[int]()
        self.url = ""
        self._tasks = set[asyncio.Task[object]]()

    async def serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        """Pass one connection on, until both ends have ended it; without a server it is closed."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for port in list(self.ports):
            self.ports.append(self.ports.pop(0))
            if await _healthy(port):
                break
        else:
            answers.close()
            return
        self.connections[port] += 1
        server, asks = await asyncio.open_connection("127.0.0.1", port)
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(_copy(client, asks), _copy(server, answers))
        finally:
            asks.close()
            answers.close()

    async def close(self) -> None:
        """End what is left of connections."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _healthy(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(_PROBE)
        status = await reader.readline()
    except OSError:
        return False
    finally:
        writer.close()
    return b" 200 " in status


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_BYTES):
            target.write(data)
            await target.drain()
    with suppress(OSError):
        target.close()


@asynccontextmanager
async def balancer() -> AsyncIterator[Balancer]:
    """One that serves within the block."""
    one = Balancer()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield one
    finally:
        server.close()
        await one.close()
