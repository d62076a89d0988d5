"""Servers on one PostgreSQL behind a balancer: replaced one after the other under load, without an error."""

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
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cli.balancer import Balancer, balancer
from tests.journal.postgres.server import PostgresServer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow
MODULE = """
from remit import Run, recipe, tool

@tool("note.add", level="L1", idempotent=True)
async def add(path: str, line: str) -> str:
    with open(path, "a") as file:
        file.write(line + "\\n")
    return line

@recipe("steps")
async def steps(run: Run) -> list[int]:
    return [(await run.wait_signal(f"go-{number}"))["number"] for number in range(4)]
"""
SETTINGS = """
[app]
modules = ["fleet_module.py"]
[serve]
drain_seconds = 1
[limits."note.*"]
concurrency = 64
rate = "100000/s"
[[policy.rules]]
id = "notes"
effect = "allow"
tools = ["note.*"]
[journal]
"""
CLIENTS = 3
Connect = Callable[..., http.client.HTTPConnection]
"""Makes a connection of a client."""


class Server:
    """One server of the fleet."""

    def __init__(self, folder: Path, *options: str, **env: str) -> None:
        command = [sys.executable, "-m", "remit", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_env(folder) | env
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


def _env(folder: Path) -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    return {"HOME": str(folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": source, "REMIT_TRUST": "1", "LANG": "C.UTF-8"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with PostgresServer.running() as postgres:
        (tmp_path / "fleet_module.py").write_text(MODULE)
        (tmp_path / "remit.toml").write_text(f'{SETTINGS}url = "{postgres.url}"\n')
        yield tmp_path


@contextlib.asynccontextmanager
async def _fleet(folder: Path, servers: int) -> AsyncIterator[tuple[Balancer, list[Server]]]:
    running: list[Server] = []
    async with balancer() as front:
        try:
            for _ in range(servers):
                running.append(await asyncio.to_thread(Server, folder))
                front.ports.append(running[-1].port)
            yield front, running
        finally:
            for server in running:
                if server.process.poll() is None:
                    server.process.kill()
                    server.process.communicate()


async def _replace(front: Balancer, running: list[Server], folder: Path) -> None:
    """Start a successor, and then end the oldest server."""
    successor = await asyncio.to_thread(Server, folder)
    running.append(successor)
    front.ports.append(successor.port)
    oldest = running.pop(0)
    assert await asyncio.to_thread(oldest.end) == 0
    front.ports.remove(oldest.port)


async def _follow(front: Balancer, job: str, seen: list[int], ended: asyncio.Event, connections: list[int]) -> None:
    """Follow a job as an EventSource does: again after each end, from the last event on."""
    address = urlsplit(front.url)
    while not ended.is_set():
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        last = seen[-1] if seen else 0
        head = f"GET /v1/jobs/{job}/events/live HTTP/1.1\r\nhost: 127.0.0.1\r\nlast-event-id: {last}\r\n\r\n"
        connections.append(last)
        with contextlib.closing(writer):
            writer.write(head.encode())
            while line := await reader.readline():
                if line.startswith(b"id: "):
                    seen.append(int(line[4:]))
                if line.strip() == b"event: job_completed":
                    ended.set()


async def _asked(url: str, method: str, path: str, body: Any = None) -> Any:
    def ask() -> Any:
        address = urlsplit(url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            assert response.status < 300, response.read()
            return json.loads(response.read() or b"null")

    return await asyncio.to_thread(ask)


async def test_servers_are_replaced_under_load_without_an_error_and_followers_continue(folder: Path) -> None:
    async with _fleet(folder, 2) as (front, running):
        load, seen, ended, connections = (
            Load(front.url, folder, http.client.HTTPConnection),
            list[int](),
            asyncio.Event(),
            list[int](),
        )
        job = (await _asked(front.url, "POST", "/v1/jobs", {"recipe": "steps"}))["job"]
        following = asyncio.ensure_future(_follow(front, job, seen, ended, connections))
        async with load.running():
            for number in range(2):
                await load.more(30)
                await _asked(
                    front.url, "POST", f"/v1/jobs/{job}/signal", {"name": f"go-{number}", "payload": {"number": number}}
                )
                await _replace(front, running, folder)
                await load.more(30)
        for number in (2, 3):
            await _asked(
                front.url, "POST", f"/v1/jobs/{job}/signal", {"name": f"go-{number}", "payload": {"number": number}}
            )
        async with asyncio.timeout(PATIENCE_S):
            await following
        assert load.errors == []
        assert sorted((folder / "notes.txt").read_text().split()) == sorted(load.lines)
        assert seen == list(range(1, len(seen) + 1))
        assert len(connections) > 1
        assert len(front.connections) == 4
        shown = await _asked(front.url, "GET", f"/v1/jobs/{job}")
        assert (shown["state"], shown["result"]) == ("completed", [0, 1, 2, 3])
