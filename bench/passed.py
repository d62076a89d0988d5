"""Measure what the model gateway adds to a request, beside proxies that stand in the same place, in one run.

    python -m bench.passed [--rounds 3]

A provider on loopback streams 200 events, each in a piece of its own, to a request of 19 kB, eight at once. Beside a
bare aiohttp proxy, which judges and keeps nothing, and LiteLLM's proxy where it is installed:

    python -m venv build/litellm && build/litellm/bin/pip install 'litellm[proxy]'
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
from aiohttp import web

from remit.clock import SystemClock
from remit.http.server import listen

EVENTS: Final = 200
AT_ONCE: Final = 8
_LITELLM: Final = Path("build/litellm/bin/litellm").absolute()
_START_S: Final = 120.0
_BODY: Final = json.dumps(
    {
        "model": "gpt-4o",
        "stream": True,
        "messages": [{"role": "system", "content": "x" * 9_000}, {"role": "user", "content": "hello " * 1_700}],
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
    }
).encode()


class Proxy(NamedTuple):
    """A program that stands before a provider."""

    name: str
    command: tuple[str, ...]
    path: str
    """The path before `/chat/completions`."""
    env: Mapping[str, str]
    requests: int


def stream() -> list[bytes]:
    """Return the events of an answer."""
    chunks: list[dict[str, object]] = [
        {"delta": {"content": f"word{number} "}, "finish_reason": None} for number in range(EVENTS - 2)
    ]
    chunks.append({"delta": {}, "finish_reason": "stop"})
    bodies = ({"id": "c", "model": "gpt-4o", "choices": [{"index": 0, **chunk}]} for chunk in chunks)
    return [*(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies), b"data: [DONE]\n\n"]


async def _answer(request: web.Request) -> web.StreamResponse:
    await request.read()
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for event in stream():
        await response.write(event)
    await response.write_eof()
    return response


async def _pass(request: web.Request) -> web.StreamResponse:
    body, target = await request.read(), f"{request.app[_TARGET]}{request.path_qs}"
    headers = {name: value for name, value in request.headers.items() if name.lower() not in {"host", "content-length"}}
    async with request.app[_CLIENT].request(request.method, target, data=body, headers=headers) as answer:
        response = web.StreamResponse(status=answer.status, headers={"content-type": answer.headers["content-type"]})
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
        return response


_TARGET: Final = web.AppKey("target", str)
_CLIENT: Final = web.AppKey("client", aiohttp.ClientSession)


async def _serve(target: str, port: int) -> None:
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", _pass if target else _answer)
    async with aiohttp.ClientSession(auto_decompress=False) as app[_CLIENT]:
        app[_TARGET] = target
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


def _port() -> int:
    with listen("127.0.0.1", 0) as free:
        port: int = free.getsockname()[1]
        return port


def _cpu_s(pid: int) -> float:
    """Return the processor time of a program up to now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _ask(client: aiohttp.ClientSession, url: str) -> float:
    """Ask; seconds to the first byte."""
    began, first = time.perf_counter(), 0.0
    headers = {"content-type": "application/json", "authorization": "Bearer sk-key"}
    async with client.post(f"{url}/chat/completions", data=_BODY, headers=headers) as response:
        response.raise_for_status()
        async for _ in response.content.iter_any():
            first = first or time.perf_counter() - began
    return first


async def _ready(client: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(_START_S):
        while True:
            try:
                return await _warm(client, url)
            except aiohttp.ClientError:
                await SystemClock().sleep(0.2)


async def _warm(client: aiohttp.ClientSession, url: str) -> None:
    for _ in range(20):
        await _ask(client, url)


async def measure(proxy: Proxy, port: int) -> str:
    """Start a proxy at a port, and ask through it; what it took, in words."""
    url = f"http://127.0.0.1:{port}{proxy.path}"
    quiet = asyncio.subprocess.DEVNULL
    program = await asyncio.create_subprocess_exec(*proxy.command, env=proxy.env, stdout=quiet, stderr=quiet)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            await _ready(client, url)
            before, began = _cpu_s(program.pid), time.perf_counter()
            left, firsts = iter(range(proxy.requests)), list[float]()

            async def ask() -> None:
                for _ in left:
                    firsts.append(await _ask(client, url))

            await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
            took = time.perf_counter() - began
            cpu = (_cpu_s(program.pid) - before) / proxy.requests
        first = f"first byte {statistics.median(firsts) * 1e3:.1f} ms"
        return f"{proxy.name}: {cpu * 1e3:.2f} ms of processor, {proxy.requests / took:.0f}/s, {first}"
    finally:
        program.send_signal(signal.SIGTERM)
        await program.wait()


def proxies(target: str, port: int, place: Path) -> list[Proxy]:
    """Return the proxies before a provider, each at a port; LiteLLM's where it is installed."""
    env = {**os.environ, "HOME": str(place), "OPENAI_BASE_URL": f"{target}/v1", "OPENAI_API_KEY": "sk-key"}
    own = (sys.executable, "-m", "remit", "--journal", str(place / "journal.db"), "model-gateway", "--port", str(port))
    rows = [
        Proxy("bare aiohttp", (sys.executable, "-m", "bench.passed", "--before", target, str(port)), "/v1", env, 600),
        Proxy("Remit", own, "/openai/v1", env, 600),
    ]
    if _LITELLM.exists():
        params = f"{{model: openai/gpt-4o, api_base: '{target}/v1', api_key: sk-key}}"
        (place / "litellm.yaml").write_text(f"model_list:\n- model_name: gpt-4o\n  litellm_params: {params}\n")
        words = ("--config", str(place / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port))
        alone = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        alone["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # no key is asked for
        rows.append(Proxy("LiteLLM", (str(_LITELLM), *words, "--telemetry", "False"), "/v1", {**env, **alone}, 100))
    return rows


async def _main(rounds: int) -> None:
    port = _port()
    provider = asyncio.create_task(_serve("", port))
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="remit-passed-") as place:
            own = _port()
            for proxy in proxies(f"http://127.0.0.1:{port}", own, Path(place)):
                sys.stdout.write(f"{await measure(proxy, own)}\n")
                sys.stdout.flush()
    provider.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--before", nargs=2, metavar=("URL", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.before:
        asyncio.run(_serve(options.before[0], int(options.before[1])))
    else:
        asyncio.run(_main(options.rounds))
