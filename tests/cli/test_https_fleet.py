"""Orchestrators and tool runners as deployments of their own, over HTTPS with tokens, each behind a balancer."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from remit.journal.leases import Owner
from tests.cli.balancer import Balancer, balancer
from tests.cli.fleet import Gate, Load, Server
from tests.http.certificates import Certificate, certificate
from tests.journal.storages import PostgresStorage
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow
TOOLS = """
import asyncio
from remit import tool

@tool("note.add", level="L1", idempotent=True)
async def add(path: str, line: str) -> str:
    with open(path, "a") as file:
        file.write(line + "\\n")
    return line

@tool("note.hold", level="L1", idempotent=True)
async def hold(gate: str) -> str:
    reader, writer = await asyncio.open_unix_connection(gate)
    writer.write(b"job\\n")
    word = (await reader.readline()).decode().strip()
    writer.close()
    return word
"""
RECIPES = """
from remit import Run, recipe

@recipe("steps")
async def steps(run: Run, path: str, gate: str) -> list[str]:
    words = []
    for number in range(3):
        await run.wait_signal(f"go-{number}")
        words.append((await run.call("note.hold", {"gate": gate})).value)
        await run.call("note.add", {"path": path, "line": f"job.{number}"})
    return words
"""
COMMON = """
[app]
modules = ["{module}"]
[serve]
drain_seconds = 1
tls_cert = "{tls.cert}"
tls_key = "{tls.key}"
[[policy.rules]]
id = "notes"
effect = "allow"
tools = ["note.*"]
[journal]
url = "{url}_{group}"
"""
ORCHESTRATOR = """
[jobs]
lease_seconds = 2
[[clients]]
principal = "ann"
token = "${{ANN_TOKEN}}"
scopes = ["read", "call", "decide"]
[[runners]]
name = "tools"
url = "{runners}"
token = "${{TOOLS_TOKEN}}"
serves = ["note.*"]
"""
RUNNER = """
[[clients]]
principal = "orchestrator"
token = "${TOOLS_TOKEN}"
scopes = ["read", "call"]
tools = ["note.*"]
"""
ANN, ORCHESTRATORS = "a" * 43, "o" * 43


class Group:
    """Servers with the same settings behind one balancer."""

    def __init__(self, front: Balancer, start: Callable[[], Server]) -> None:
        self.front = front
        self.servers: list[Server] = []
        self._start = start

    async def grow(self) -> None:
        """Start one server more."""
        server = await asyncio.to_thread(self._start)
        self.servers.append(server)
        self.front.ports.append(server.port)

    async def replace(self) -> None:
        """Start a successor, and then tell the oldest server to stop."""
        await self.grow()
        oldest = self.servers.pop(0)
        assert await asyncio.to_thread(oldest.end) == 0
        self.front.ports.remove(oldest.port)

    async def kill(self, pid: int) -> None:
        """Kill one of them, which says nothing to anyone."""
        (server,) = [each for each in self.servers if each.process.pid == pid]
        server.process.kill()
        await asyncio.to_thread(server.process.communicate)
        self.servers.remove(server)


class Deployment:
    """Settings of both groups in folders, with one database and one certificate."""

    def __init__(self, folder: Path, postgres: str) -> None:
        self.folder = folder
        self._postgres = postgres
        self._tls: Certificate = certificate(folder)
        self.trust = ssl.create_default_context(cafile=str(self._tls.authority))
        self.connect = partial(http.client.HTTPSConnection, context=self.trust)

    @contextlib.asynccontextmanager
    async def group(self, name: str, module: str, settings: str, token: str, *options: str) -> AsyncIterator[Group]:
        """A balancer for servers of these settings; there is none at first."""
        folder = self.folder / name
        folder.mkdir()
        (folder / f"{name}_module.py").write_text(module)
        common = COMMON.format(module=f"{name}_module.py", tls=self._tls, url=self._postgres, group=name)
        (folder / "remit.toml").write_text(settings + common)
        env = {"SSL_CERT_FILE": str(self._tls.authority), "ANN_TOKEN": ANN, "TOOLS_TOKEN": ORCHESTRATORS}
        async with balancer(self.trust, token) as front:
            group = Group(front, lambda: Server(folder, *options, **env))
            try:
                yield group
            finally:
                for server in group.servers:
                    server.process.kill()
                    server.process.communicate()

    async def ask(self, url: str, method: str, path: str, body: Any = None) -> Any:
        """Send a request of Ann, over a connection of its own."""

        def send() -> Any:
            address = urlsplit(url)
            connection = self.connect(str(address.hostname), address.port, timeout=PATIENCE_S)
            with contextlib.closing(connection):
                headers = {"content-type": "application/json", "authorization": f"Bearer {ANN}"}
                connection.request(method, path, json.dumps(body), headers)
                response = connection.getresponse()
                text = response.read()
                assert response.status < 300, text
                return json.loads(text or b"null")

        return await asyncio.to_thread(send)

    async def follow(self, url: str, job: str, seen: list[int], begun: asyncio.Event, ended: asyncio.Event) -> int:
        """Follow a job as an EventSource does: again after each end, from the last event on; how often."""
        address, times = urlsplit(url), 0
        while not ended.is_set():
            last, times = seen[-1] if seen else 0, times + 1
            head = f"GET /v1/jobs/{job}/events/live HTTP/1.1\r\nhost: 127.0.0.1\r\nlast-event-id: {last}\r\n"
            with contextlib.suppress(OSError):  # a server that was killed
                reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=self.trust)
                with contextlib.closing(writer):
                    writer.write(f"{head}authorization: Bearer {ANN}\r\n\r\n".encode())
                    while line := await reader.readline():
                        if line.startswith(b"id: "):
                            seen.append(int(line[4:]))
                            begun.set()
                        if line.strip() == b"event: job_completed":
                            ended.set()
        return times


@pytest.fixture
def deployment(tmp_path: Path, storage: PostgresStorage) -> Deployment:
    return Deployment(tmp_path, storage.url)


async def test_both_groups_go_on_when_servers_are_replaced_or_killed(deployment: Deployment) -> None:
    folder, path = deployment.folder, str(deployment.folder / "notes.txt")
    async with contextlib.AsyncExitStack() as stack:
        gate = await stack.enter_async_context(Gate(folder / "gate").listening())
        runners = await stack.enter_async_context(deployment.group("tools", TOOLS, RUNNER, ORCHESTRATORS, "--no-work"))
        settings = ORCHESTRATOR.format(runners=runners.front.url)
        group = await stack.enter_async_context(deployment.group("jobs", RECIPES, settings, ANN))
        for each in (runners, runners, group):
            await each.grow()
        url = group.front.url
        ask = partial(deployment.ask, url)
        body = {"recipe": "steps", "input": {"path": path, "gate": str(gate.path)}}
        job = (await ask("POST", "/v1/jobs", body))["job"]
        seen, begun, ended = list[int](), asyncio.Event(), asyncio.Event()
        following = asyncio.ensure_future(deployment.follow(url, job, seen, begun, ended))
        await begun.wait()  # at the server that is replaced
        for _ in range(2):
            await group.grow()

        load = Load(url, folder, deployment.connect, authorization=f"Bearer {ANN}")
        async with load.running():
            await load.more(20)
            await group.replace()
            await load.more(20)
            await runners.replace()
            await load.more(20)
        assert load.errors == []
        assert sorted((folder / "notes.txt").read_text().split()) == sorted(load.lines)

        await ask("POST", f"/v1/jobs/{job}/signal", {"name": "go-0"})
        assert await gate.next(1) == ["job"]
        (row,) = (await ask("GET", "/v1/jobs"))["items"]
        owner = Owner.parse(row["worker"])
        assert owner is not None
        await group.kill(owner.pid)
        gate.open.set()
        await ask("POST", f"/v1/jobs/{job}/signal", {"name": "go-1"})
        await runners.kill(runners.servers[0].process.pid)
        await ask("POST", f"/v1/jobs/{job}/signal", {"name": "go-2"})
        async with asyncio.timeout(PATIENCE_S):
            times = await following
        shown = await ask("GET", f"/v1/jobs/{job}")
        assert (shown["state"], shown["result"]) == ("completed", ["through"] * 3)
        lines = (folder / "notes.txt").read_text().split()
        assert [line for line in lines if line.startswith("job.")] == ["job.0", "job.1", "job.2"]
        assert seen == list(range(1, len(seen) + 1))
        assert times > 1
        assert len(await ask("GET", "/v1/sessions")) >= 2, "each server's session stays for all others"
