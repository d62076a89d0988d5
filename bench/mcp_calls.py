"""MCP, both ways: calls through the provider and through our server beside the bare SDK, and what connections cost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from bench.lab import ROOT, Lab, heard
from bench.measure import Mark, Peer, PeerMissingError, Reading, Result, Sample, Watch, against
from remit import Remit
from remit.gateway.call import GateRequest
from remit.ids import new_id
from remit.settings import load

CALLS, ROUND_TRIP, PROXIED, FORGED, AT_ONCE = 1_500, 2_400, 300, 96, 32
SERVERS, STEP_S = 8, 0.1
IDLE = 200
_LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp."""
ECHO = [sys.executable, str(ROOT / "bench" / "echo_server.py")]
SLOW = [sys.executable, "-S", str(ROOT / "bench" / "slow_server.py")]
MODULE = """
from remit import tool

@tool("bench.echo", level="L0")
async def echo(text: str) -> str:
    \"\"\"Says it again.\"\"\"
    return text
"""


def _remit(folder: Path, servers: list[dict[str, Any]]) -> Remit:
    flags = {"journal.url": str(folder / "mcp.db"), "mcp.servers": servers}
    return Remit(settings=load(cwd=folder, env=dict(os.environ), flags=flags), work=False)


def _entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "command": ECHO, "tools": {"echo": "L0"}, **more}


def _bare(*words: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[*ECHO[1:], *words])


async def mcp_provider(lab: Lab) -> list[Result]:
    """A governed, recorded call of a tool of a server on stdio, one after another."""

    async def sample() -> Reading:
        async with _remit(lab.folder, [_entry("echo")]) as remit:
            gateway = remit.runtime.gateway
            writer = remit.runtime.journal.writer(f"session/{new_id('ses')}", "session")
            request = GateRequest(tool="mcp.echo.echo", args={"text": "hi"}, step="1", principal="bench")
            assert (await gateway.call(request, writer)).ok
            watch = Watch()
            for _ in range(CALLS):
                await gateway.call(request, writer)
            return watch.micros(CALLS)

    async def floor() -> Reading:
        async with Client(_bare(), mode="legacy") as client:
            await client.call_tool("echo", {"text": "hi"})
            watch = Watch()
            for _ in range(CALLS):
                await client.call_tool("echo", {"text": "hi"})
            return watch.micros(CALLS)

    async def proxied() -> Reading:
        python = ROOT / ".venv-bench/bin/python"
        if not python.exists():
            raise PeerMissingError("make bench PEERS=1 installs it")
        proxy = [str(ROOT / "bench/peers/fastmcp_proxy.py"), *ECHO]
        async with Client(StdioServerParameters(command=str(python), args=proxy), mode="legacy") as client:
            await client.call_tool("echo", {"text": "hi"})
            watch = Watch()
            for _ in range(PROXIED):
                await client.call_tool("echo", {"text": "hi"})
            return watch.micros(PROXIED)

    note = "floor: the same with the bare SDK client"
    peers = [Peer("fastmcp's proxy", proxied, Mark(2.5, "peer"))] if lab.peers else []
    return await against(
        "MCP call through the provider", "µs", sample, floor, note, mark=Mark(1.25, "floor"), peers=peers
    )


async def _rate(client: Client, tool: str, calls: int) -> Reading:
    async def some(count: int) -> None:
        for _ in range(count):
            result = await client.call_tool(tool, {"text": "hi"})
            assert not result.is_error, result

    await some(1)
    watch = Watch()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(some(calls // AT_ONCE))
    return watch.rate(calls // AT_ONCE * AT_ONCE)


async def mcp_server(lab: Lab) -> list[Result]:
    """Calls of our server on stdio, 32 at once, each recorded and flushed before its answer leaves."""
    (lab.folder / "echo.py").write_text(MODULE)
    words = ["-m", "remit", "--journal", str(lab.folder / "served.db"), "mcp", "serve"]
    env = {**os.environ, "REMIT_MODULES": str(lab.folder / "echo.py"), "PYTHONPATH": str(ROOT / "src")}
    ours = StdioServerParameters(command=sys.executable, args=words, env=env, cwd=lab.folder)

    async def sample() -> Reading:
        async with Client(ours, mode="legacy") as client:
            return await _rate(client, "bench__echo", CALLS)

    async def floor() -> Reading:
        async with Client(_bare(), mode="legacy") as client:
            return await _rate(client, "echo", CALLS)

    note = "floor: a bare SDK server; one SDK client for both"
    return await against("MCP server on stdio, 32 at once", "per second", sample, floor, note, mark=Mark(0.8, "floor"))


@contextlib.asynccontextmanager
async def _printing_url(*words: str, folder: Path, **env: str) -> AsyncIterator[str]:
    """Start a server; the line that it prints first. Raises RuntimeError with its last words where it prints none."""
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *words, cwd=folder, env={**os.environ, **env}, stdout=asyncio.subprocess.PIPE, stderr=errors
        )
        try:
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode().strip()
            if not line:
                await process.wait()
                errors.seek(0)
                last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                raise RuntimeError(f"{words[0]} printed no address: {''.join(last)[:300]}")
            yield line
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


@contextlib.asynccontextmanager
async def _fronting(lab: Lab) -> AsyncIterator[tuple[str, str]]:
    """The URLs of a bare server and of our gateway before it."""
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        folder = Path(own)
        async with _printing_url(*ECHO, "--http", folder=folder) as bare:
            (folder / "remit.toml").write_text(
                f'[[mcp.servers]]\nname = "echo"\nurl = "{bare}"\ntools = {{ echo = "L0" }}\n'
            )
            serve = (sys.executable, "-m", "remit", "--trust", "mcp", "serve", "--http", "--port", "0")
            async with _printing_url(*serve, folder=folder, PYTHONPATH=str(ROOT / "src")) as ours:
                yield bare, ours


@contextlib.asynccontextmanager
async def _contextforge(lab: Lab, bare: str, *how: str) -> AsyncIterator[tuple[str, str]]:
    """ContextForge before a bare server, made again: its URL, and what it calls the tool."""
    python = ROOT / ".venv-gateway/bin/python"
    if not python.exists():
        raise PeerMissingError("make bench PEERS=1 installs it")
    with tempfile.TemporaryDirectory(dir=lab.folder) as own:
        program = (str(python), str(ROOT / "bench/peers/contextforge.py"), bare, own, *how)
        async with _printing_url(*program, folder=lab.folder, PYTHONPATH=str(ROOT)) as line:
            if reading := heard(line.encode()):
                raise PeerMissingError(reading.missing)
            url, tool = line.split()
            yield url, tool


async def mcp_http(lab: Lab) -> list[Result]:
    """Our gateway over HTTP before a server over HTTP."""
    async with _fronting(lab) as (bare, ours):

        async def sample() -> Reading:
            async with Client(ours) as client:
                return await _rate(client, "mcp__echo__echo", ROUND_TRIP)

        async def floor() -> Reading:
            async with Client(bare) as client:
                return await _rate(client, "echo", ROUND_TRIP)

        def forged(*how: str) -> Sample:
            async def sample() -> Reading:
                async with _contextforge(lab, bare, *how) as (url, tool), Client(url, mode="legacy") as client:
                    await _rate(client, tool, FORGED)  # its caches fill, and its code warms up
                    return await _rate(client, tool, FORGED)

            return sample

        note = "floor: the bare server"
        forges = [Peer("ContextForge", forged(), Mark(20, "peer")), Peer("ContextForge, tuned", forged("tuned"))]
        peers = forges if lab.peers else []
        return await against("MCP gateway, HTTP before HTTP", "per second", sample, floor, note, peers=peers, rounds=3)


async def mcp_connect(lab: Lab) -> list[Result]:
    """Eight servers are connected and listed; each takes longer to start than the one before."""

    async def listed(numbers: range) -> Reading:
        entries = [_entry(f"s{number}", command=[*SLOW, str(number * STEP_S)]) for number in numbers]
        async with _remit(lab.folder, entries) as remit:
            watch = Watch()
            tools = await remit.runtime.services.catalog.tools()
            assert sum(tool.meta.name.startswith("mcp.") for tool in tools) == len(numbers)
            return watch.millis(1)

    async def sample() -> Reading:
        return await listed(range(SERVERS))

    async def floor() -> Reading:
        return await listed(range(SERVERS - 1, SERVERS))

    note = f"floor: the slowest alone, {(SERVERS - 1) * STEP_S:g} s until it answers"
    return await against("8 MCP servers connected", "ms", sample, floor, note, mark=Mark(1.25, "floor"), rounds=3)


async def mcp_idle(lab: Lab) -> list[Result]:
    """What a connected client that does nothing costs our server over HTTP, in each era."""

    def sample_of(mode: str) -> Sample:
        async def sample() -> Reading:
            serve = (sys.executable, "-m", "remit", "--journal", str(lab.folder / "idle.db"), "mcp", "serve", "--http")
            async with (
                _printing_url(*serve, "--port", "0", folder=lab.folder, PYTHONPATH=str(ROOT / "src")) as url,
                contextlib.AsyncExitStack() as stack,
            ):

                async def connect(count: int) -> None:
                    for _ in range(count):
                        client = await stack.enter_async_context(Client(url, mode=mode))
                        await client.list_tools()

                await connect(min(20, IDLE))  # what the first ones make once for all
                before = _resident(url)
                await connect(IDLE)
                return Reading((_resident(url) - before) / IDLE)

        return sample

    results = []
    for era, mode in (("2026-07-28", "2026-07-28"), ("2025-11-25", "legacy")):
        name = f"idle MCP client over HTTP, {era}"
        results += await against(name, "kB", sample_of(mode), None, f"{IDLE} clients", mark=Mark(64), rounds=1)
    return results


def _resident(url: str) -> float:
    """Resident kB of the process that listens at a URL."""
    port = int(url.rsplit(":", 1)[1].partition("/")[0])
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inode = next(row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == _LISTENS)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(each.readlink()) == f"socket:[{inode}]" for each in (process / "fd").iterdir()):
                status = (process / "status").read_text().splitlines()
                return float(next(row.split()[1] for row in status if row.startswith("VmRSS")))
    msg = f"nothing listens at {url}"
    raise AssertionError(msg)
