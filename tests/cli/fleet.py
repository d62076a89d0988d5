"""Servers that are started as commands, clients that call them without a pause, and a gate at which jobs wait."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import urlsplit

from tests.dates import DATE_ENV
from tests.patience import PATIENCE_S

CLIENTS = 2
Connect = Callable[..., http.client.HTTPConnection]
"""Makes a connection of a client."""


def env(folder: Path) -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    own = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": source, "REMIT_TRUST": "1", "LANG": "C.UTF-8"}
    return own | DATE_ENV


class Server:
    """A server."""

    def __init__(self, folder: Path, *options: str, **more: str) -> None:
        command = [sys.executable, "-m", "remit", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env(folder) | more
        )
        assert self.process.stdout is not None
        self.port = urlsplit(self.process.stdout.readline().strip()).port or 0

    def end(self) -> int:
        """Tell it to stop; its status once it has."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


class Load:
    """Clients that call a tool over connections that they keep, each as fast as it can, until they are told to stop."""

    def __init__(self, url: str, folder: Path, connect: Connect, **headers: str) -> None:
        self._url = url
        self._connect = connect
        self._headers = {"content-type": "application/json", **headers}
        self._file = folder / "notes.txt"
        self._stop = threading.Event()
        self.lines: list[str] = []
        self.errors: list[str] = []
        self.enough = asyncio.Semaphore(0)
        self._loop = asyncio.get_running_loop()

    def client(self, number: int) -> None:
        """Call until told to stop."""
        address = urlsplit(self._url)
        connection = self._connect(str(address.hostname), address.port, timeout=PATIENCE_S)
        for count in itertools.takewhile(lambda _: not self._stop.is_set(), itertools.count()):
            line = f"{number}.{count}"
            body = json.dumps({"tool_name": "note_add", "args": {"path": str(self._file), "line": line}})
            try:
                connection.request("POST", "/v1/tools/execute", body, self._headers)
                response = connection.getresponse()
                outcome = json.load(response)
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))
                connection.close()
                continue
            if response.status == 200 and outcome["status"] == "ok":
                self.lines.append(line)
            else:
                self.errors.append(json.dumps(outcome))
            self._loop.call_soon_threadsafe(self.enough.release)
        connection.close()

    async def more(self, calls: int) -> None:
        """Wait for so many calls more."""
        for _ in range(calls):
            await self.enough.acquire()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Call within the block."""
        clients = [asyncio.ensure_future(asyncio.to_thread(self.client, number)) for number in range(CLIENTS)]
        try:
            yield
        finally:
            self._stop.set()
            await asyncio.gather(*clients)


class Gate:
    """Where jobs wait until it is opened, and from then on no more; it knows what each says who comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: asyncio.Queue[str] = asyncio.Queue()
        self.open = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.names.put_nowait((await reader.readline()).decode().strip())
        await self.open.wait()
        writer.write(b"through\n")
        writer.close()

    async def next(self, number: int) -> list[str]:
        """What those say who come next."""
        async with asyncio.timeout(PATIENCE_S):
            return sorted([await self.names.get() for _ in range(number)])

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Gate]:
        """Serve within the block."""
        server = await asyncio.start_unix_server(self._serve, self.path)
        try:
            yield self
        finally:
            self.open.set()
            server.close()
