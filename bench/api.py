"""The HTTP API: calls over one connection and over many, and tickets worked on through a server."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from bench.lab import PROCRASTINATE, Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.peers.postgres import database
from bench.peers.program import TICKETS, WORKERS
from remit import Remit, tool
from remit.api.part import Api
from remit.api.route import ApiRequest, Route
from remit.api.routes.tools import ExecuteBody
from remit.api.table import ROUTES
from remit.clock import SystemClock
from remit.http.access import RequestPlaces
from remit.http.guard import Guard
from remit.http.router import PartMount, Router
from remit.http.server import listen, serve
from remit.parts.tickets.runner import RunnerConfig
from remit.settings import load

CALLS, AT_ONCE = 400, 32
UNGATED: Final = "the same app without gateway and journal"
_BODY: Final = msgspec.json.encode({"tool_name": "desk_look", "args": {"what": "x"}})
_REQUEST: Final = b"POST /v1/tools/execute HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
_TICK_US: Final = 1_000_000 / os.sysconf("SC_CLK_TCK")


@tool("desk.look", level="L0")
async def look(what: str) -> str:
    """Look something up."""
    return what.upper()


async def bare(request: ApiRequest) -> dict[str, Any]:
    """Answer a call without gateway and journal."""
    return {"status": "ok", "value": await look.function(request.body.args["what"])}


_BARE: Final = Route(
    method="POST",
    path="/v1/tools/execute",
    name="tools.execute",
    scope="call",
    summary="Call a tool.",
    handler=bare,
    body=ExecuteBody,
    answer=dict[str, Any],
)


def opened(folder: str, url: str = "") -> Remit:
    """A Remit over a journal in a folder, or at a URL."""
    flags = {"journal.url": url or str(Path(folder) / "journal.db"), "app.principal": "bench"}
    return Remit(settings=load(cwd=Path(folder), env={}, flags=flags), tools=[look])


def run_server(folder: str, port: int, gated: bool) -> None:
    """Serve until killed; the entry point of a process."""

    async def main() -> None:
        async with opened(folder) as remit:
            api = Api(remit.service, ROUTES if gated else [_BARE], RequestPlaces(2_000))
            guard = Guard.of("127.0.0.1", (), (), SystemClock())
            with listen("127.0.0.1", port) as listening:
                await serve(Router(guard, [PartMount("/", api, None)]), listening, asyncio.Event())

    asyncio.run(main())


@contextmanager
def server(lab: Lab, *, gated: bool) -> Iterator[tuple[int, int]]:
    """Port and process of a server."""
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    with TemporaryDirectory(dir=lab.folder) as folder:
        process = multiprocessing.get_context("spawn").Process(target=run_server, args=(folder, port, gated))
        process.start()
        try:
            yield port, process.pid or 0
        finally:
            process.kill()
            process.join()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that may still be starting."""
    reader, writer = await _reached(port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _reached(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await SystemClock().sleep(0.05)


async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One call on a kept connection."""
    writer.write(_REQUEST + b"content-length: %d\r\n\r\n" % len(_BODY) + _BODY)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    assert b'"ok"' in await reader.readexactly(length)


def cpu_us(pid: int) -> float:
    """Microseconds of processor that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_US


async def _calling(lab: Lab, *, gated: bool, connections: int) -> tuple[float, float]:
    """Calls per second, and the server's processor time for each."""
    with server(lab, gated=gated) as (port, pid):

        async def client(count: int) -> None:
            async with connected(port) as (reader, writer):
                for _ in range(count):
                    await call(reader, writer)

        await client(50)
        before, began = cpu_us(pid), time.perf_counter()
        await asyncio.gather(*(client(CALLS // connections * 4) for _ in range(connections)))
        seconds, count = time.perf_counter() - began, CALLS // connections * 4 * connections
        return count / seconds, (cpu_us(pid) - before) / count


async def api_call(lab: Lab) -> list[Result]:
    """A governed call over one kept connection; the floor is the same app without gateway and journal."""

    async def ours() -> Reading:
        rate, cpu = await _calling(lab, gated=True, connections=1)
        return Reading(1_000_000 / rate, cpu)

    async def floor() -> Reading:
        rate, cpu = await _calling(lab, gated=False, connections=1)
        return Reading(1_000_000 / rate, cpu)

    return await against("API, a call on a kept connection", "µs", ours, floor, UNGATED)


async def api_calls(lab: Lab) -> list[Result]:
    """Governed calls over 32 kept connections; the floor is the same app without gateway and journal."""

    async def ours() -> Reading:
        return Reading(*await _calling(lab, gated=True, connections=AT_ONCE))

    async def floor() -> Reading:
        return Reading(*await _calling(lab, gated=False, connections=AT_ONCE))

    return await against("API, calls over 32 connections", "per second", ours, floor, UNGATED)


async def _worked(folder: str, url: str = "", server: Callable[[], float] = float) -> Reading:
    """Tickets per second; `server` gives the processor seconds of a database server."""
    async with opened(folder, url) as remit:
        queue = remit.service.tickets
        steps = [{"tool_name": "desk_look", "args": {"what": "x"}}]
        event = {"type": "message", "thread_id": "t", "content": "x"}
        for _ in range(TICKETS):
            await queue.create({"type": "TOOL", "event": event, "tool_input": {"tool_steps": steps}})
        runner = queue.runner(RunnerConfig(owner="bench", limit=WORKERS), queue.executor())
        watch = Watch(server)
        while await runner.batch():
            pass  # there are more
        assert runner.report().counters["ok"] == TICKETS
        return watch.rate(TICKETS)


async def tickets_postgres(lab: Lab) -> list[Result]:
    """TOOL tickets that are leased, run and filled, on PostgreSQL."""

    async def ours() -> Reading:
        with database() as place:
            return await _worked(str(lab.folder), place.url, place.server.cpu)

    peers = lab.rival(PROCRASTINATE, "tickets", Mark(3, "peer"))
    return await against("tickets leased, run and filled, PostgreSQL", "per second", ours, None, peers=peers)


async def tickets(lab: Lab) -> list[Result]:
    """TOOL tickets that are leased, run and filled, on SQLite."""

    async def ours() -> Reading:
        with TemporaryDirectory(dir=lab.folder) as folder:
            return await _worked(folder)

    return await against("tickets leased, run and filled", "per second", ours, None)


async def in_process(lab: Lab) -> list[Result]:
    """The same governed call from Python, in the process that keeps the journal."""

    async def ours() -> Reading:
        with TemporaryDirectory(dir=lab.folder) as folder:
            async with opened(folder) as remit:
                began, cpu = time.perf_counter(), time.process_time()
                for _ in range(CALLS):
                    assert (await remit.call("desk_look", {"what": "x"})).ok
                cpu_us = (time.process_time() - cpu) / CALLS * 1_000_000
                return Reading((time.perf_counter() - began) / CALLS * 1_000_000, cpu_us)

    return await against("the same call in process", "µs", ours, None)
