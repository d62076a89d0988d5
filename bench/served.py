"""`remit serve`: how soon it answers, what followers of a job cost it, and answers of MCP on a kept connection."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from bench.api import connected, server
from bench.lab import Lab
from bench.measure import Mark, Reading, Result, against
from bench.startup import bare

FOLLOWERS: Final = 1_000
_PINGS: Final = 400
_PLAN: Final = {"version": "taskgraph-v1", "name": "waits", "nodes": [{"id": "w", "wait": {"signal": "go"}}]}
_HELLO: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


@asynccontextmanager
async def _remit(folder: str, *words: str) -> AsyncIterator[int]:
    """A server of the command line; the port that it names."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remit", "--journal", "journal.db", *words, "--port", "0"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip().removesuffix("/mcp")
        yield int(url.rpartition(":")[2])
    finally:
        process.terminate()
        await process.communicate()


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: Any = None, *headers: str
) -> tuple[dict[str, str], bytes]:
    """One request on a kept connection: the headers and the body of its answer."""
    data = b"" if body is None else msgspec.json.encode(body)
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", "host: 127.0.0.1", *headers]
    if body is not None:
        lines += [
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            f"content-length: {len(data)}",
        ]
    writer.write("\r\n".join([*lines, "", ""]).encode() + data)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    assert head[0].startswith("http/1.1 2"), head[0]
    answer = dict(line.split(": ", 1) for line in head[1:] if line)
    return answer, await reader.readexactly(int(answer.get("content-length", 0)))


async def serve_started(_lab: Lab) -> list[Result]:
    """From the command to the first answer, in a folder with a new journal."""

    async def ours() -> Reading:
        with TemporaryDirectory() as folder:
            began = time.perf_counter()
            async with _remit(folder, "serve") as port, connected(port) as (reader, writer):
                await _ask(reader, writer, "/health/live")
                return Reading((time.perf_counter() - began) * 1_000)

    return await against("remit serve, first answer", "ms", ours, bare, "floor: an empty program", mark=Mark(600))


async def mcp_kept(_lab: Lab) -> list[Result]:
    """A ping over a kept connection to `remit mcp serve --http`; the median."""

    async def ours() -> Reading:
        with TemporaryDirectory() as folder:
            async with _remit(folder, "mcp", "serve", "--http") as port, connected(port) as (reader, writer):
                hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO}
                headers, _ = await _ask(reader, writer, "/mcp", hello)
                session = f"mcp-session-id: {headers['mcp-session-id']}"
                taken = []
                for number in range(1, _PINGS):
                    began = time.perf_counter()
                    await _ask(reader, writer, "/mcp", {"jsonrpc": "2.0", "id": number, "method": "ping"}, session)
                    taken.append((time.perf_counter() - began) * 1_000)
                return Reading(sorted(taken)[len(taken) // 2])

    return await against("MCP over HTTP, an answer on a kept connection", "ms", ours, None, mark=Mark(2))


async def followers(lab: Lab) -> list[Result]:
    """What 1,000 followers of one job over server-sent events leave in the server, each."""

    async def ours() -> Reading:
        with server(lab, gated=True) as (port, pid):
            async with connected(port) as (reader, writer):
                _, created = await _ask(reader, writer, "/v1/jobs", {"plan": _PLAN})
                job = msgspec.json.decode(created)["job"]
                await _followed(port, job, 50)  # what the first ones load stays
                before = _resident(pid)
                return Reading((await _followed(port, job, FOLLOWERS, pid) - before) / FOLLOWERS / 1_024)

    return await against("a follower of 1,000 by SSE", "kB", ours, None, mark=Mark(40), rounds=3)


async def _followed(port: int, job: str, count: int, pid: int = 0) -> int:
    """Resident bytes of the server while so many follow, each of whom has heard something."""
    ask = f"GET /v1/jobs/{job}/events/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()
    writers = []
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4_096)
            writers.append(writer)
            writer.write(ask)
            await reader.readuntil(b"event: job_created")
        return _resident(pid) if pid else 0
    finally:
        for writer in writers:
            writer.close()


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4_096
