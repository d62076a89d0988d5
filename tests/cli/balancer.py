"""A small TCP balancer on loopback: each connection goes to the next server whose /health says that it takes work."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_BYTES = 1 << 16
_PROBE = "GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{token}\r\n"


class Balancer:
    """Passes connections on."""

    def __init__(self, trust: ssl.SSLContext | None = None, token: str = "") -> None:
        """Probe servers with HTTPS with the token of a client, or with HTTP; TLS of clients ends at the servers."""
        self._trust = trust
        self._probe = _PROBE.format(token=f"authorization: Bearer {token}\r\n" if token else "").encode()
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
            if await self._healthy(port):
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

    async def _healthy(self, port: int) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=self._trust)
        except OSError:
            return False
        try:
            writer.write(self._probe)
            status = await reader.readline()
        except OSError:
            return False
        finally:
            writer.close()
        return b" 200 " in status

    async def close(self) -> None:
        """End what is left of connections."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_BYTES):
            target.write(data)
            await target.drain()
    with suppress(OSError):
        target.close()


@asynccontextmanager
async def balancer(trust: ssl.SSLContext | None = None, token: str = "") -> AsyncIterator[Balancer]:
    """One that serves within the block."""
    one = Balancer(trust, token)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.url = f"{'https' if trust else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield one
    finally:
        server.close()
        await one.close()
