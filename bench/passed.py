"""Measure what the model gateway adds to a request, beside proxies that stand in the same place.

A provider on loopback streams 200 events, each in a piece of its own, to a request of 19 kB. A bare aiohttp proxy
judges and keeps nothing; LiteLLM's proxy is a peer, where `make bench PEERS=1` installed it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
from aiohttp import web

from bench.lab import ROOT, Lab
from bench.measure import Mark, Peer, PeerMissingError, Reading, Result, against
from remit.clock import SystemClock
from remit.http.server import listen

EVENTS: Final = 200
AT_ONCE: Final = 8
REQUESTS: Final = 200
_LITELLM: Final = ROOT / ".venv-litellm/bin/litellm"
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
    """A program that stands before the provider, and answers."""

    pid: int
    url: str
    """Before `/chat/completions`."""


class Provider(NamedTuple):
    """The provider, in this process: when it sent its first event last is known."""

    url: str
    client: aiohttp.ClientSession
    sent: list[float]


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
    first, *rest = stream()
    await response.prepare(request)
    request.app[_SENT][:] = [time.perf_counter()]
    await response.write(first)
    for event in rest:
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
_SENT: Final = web.AppKey("sent", list[float])


@asynccontextmanager
async def _served(port: int, target: str = "") -> AsyncIterator[list[float]]:
    """Serve the provider, or the bare proxy before a target."""
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", _pass if target else _answer)
    app[_TARGET], app[_SENT] = target, list[float]()
    async with aiohttp.ClientSession(auto_decompress=False) as app[_CLIENT]:
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield app[_SENT]
        finally:
            await runner.cleanup()


def _port() -> int:
    with listen("127.0.0.1", 0) as free:
        port: int = free.getsockname()[1]
        return port


def _cpu_s(pid: int) -> float:
    """Return the processor time of a program up to now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _ask(provider: Provider, proxy: Proxy) -> float:
    """Ask; seconds from the provider's first event to ours, if nothing else is asked at once."""
    first, headers = 0.0, {"content-type": "application/json", "authorization": "Bearer sk-key"}
    async with provider.client.post(f"{proxy.url}/chat/completions", data=_BODY, headers=headers) as response:
        response.raise_for_status()
        async for _ in response.content.iter_any():
            first = first or time.perf_counter()
    return first - provider.sent[0]


async def _processor(provider: Provider, proxy: Proxy, requests: int = REQUESTS) -> Reading:
    """Return what requests took of a proxy's processor time, in milliseconds each."""
    before, left = _cpu_s(proxy.pid), iter(range(requests))

    async def ask(left: Iterator[int]) -> None:
        for _ in left:
            await _ask(provider, proxy)

    await asyncio.gather(*(ask(left) for _ in range(AT_ONCE)))
    used = (_cpu_s(proxy.pid) - before) / requests
    return Reading(used * 1e3, used * 1e6)


async def _late(provider: Provider, proxies: tuple[Proxy, Proxy]) -> list[tuple[float, float]]:
    """Return how late first events came, in milliseconds, of two proxies that are asked in turn."""
    pairs = [[await _ask(provider, proxy) * 1e3 for proxy in proxies] for _ in range(REQUESTS)]
    return [(own, floor) for own, floor in pairs]


async def passed(lab: Lab) -> list[Result]:
    """Processor time of a request, what of it a bare proxy does not take, and how much later its first event comes."""
    async with _provider() as provider, _bare(provider) as bare, _remit(provider, lab.folder) as own:
        added = list[float]()

        async def sample() -> Reading:
            reading = await _processor(provider, own)
            added.append(reading.value)
            return reading

        async def floor() -> Reading:
            reading = await _processor(provider, bare)
            added[-1] -= reading.value
            return reading

        async def litellm() -> Reading:
            async with _litellm(provider, lab.folder) as peer:
                return await _processor(provider, peer, 50)

        peers = [Peer("LiteLLM's proxy", litellm, Mark(20, "peer"))] if lab.peers else []
        results = await against(
            "model gateway, a request: processor time", "ms", sample, floor, "a bare aiohttp proxy", peers=peers
        )
        late = [pair for _ in range(3) for pair in await _late(provider, (own, bare))]
    results.append(_marked("model gateway, beside a bare proxy", statistics.median(added), "processor time it adds"))
    for name, share in (("median", 50), ("p95", 95)):
        owns, floors = ([pair[side] for pair in late] for side in (0, 1))
        value, less = (statistics.quantiles(each, n=100)[share - 1] for each in (owns, floors))
        note = f"{value:.2f} ms, of a bare proxy {less:.2f}"
        results.append(_marked(f"model gateway, first event later, {name}", value - less, note))
    return results


def _marked(name: str, value: float, note: str) -> Result:
    mark = Mark(1.0)
    return Result(name=name, value=value, unit="ms", mark=mark.text("ms"), met=mark.met("ms", value, None), note=note)


@asynccontextmanager
async def _provider() -> AsyncIterator[Provider]:
    port = _port()
    connector = aiohttp.TCPConnector(limit=0)
    async with _served(port) as sent, aiohttp.ClientSession(connector=connector) as client:
        yield Provider(f"http://127.0.0.1:{port}", client, sent)


@asynccontextmanager
async def _started(
    provider: Provider, command: tuple[str, ...], port: int, path: str, env: Mapping[str, str]
) -> AsyncIterator[Proxy]:
    """Start a proxy, and wait until it answers well."""
    quiet = asyncio.subprocess.DEVNULL
    program = await asyncio.create_subprocess_exec(*command, env=env, cwd=ROOT, stdout=quiet, stderr=quiet)
    proxy = Proxy(program.pid, f"http://127.0.0.1:{port}{path}")
    try:
        async with asyncio.timeout(_START_S):
            while True:
                try:
                    for _ in range(20):
                        await _ask(provider, proxy)
                    break
                except aiohttp.ClientError:
                    await SystemClock().sleep(0.2)
        yield proxy
    finally:
        program.send_signal(signal.SIGTERM)
        await program.wait()


def _env(provider: Provider, place: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(place), "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-key"}


@asynccontextmanager
async def _bare(provider: Provider) -> AsyncIterator[Proxy]:
    port = _port()
    command = (sys.executable, "-m", "bench.passed", provider.url, str(port))
    async with _started(provider, command, port, "/v1", os.environ) as proxy:
        yield proxy


@asynccontextmanager
async def _remit(provider: Provider, folder: Path) -> AsyncIterator[Proxy]:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        port = _port()
        words = ("-m", "remit", "--journal", f"{place}/journal.db", "model-gateway", "--port", str(port))
        env = _env(provider, Path(place))
        async with _started(provider, (sys.executable, *words), port, "/openai/v1", env) as proxy:
            yield proxy


@asynccontextmanager
async def _litellm(provider: Provider, folder: Path) -> AsyncIterator[Proxy]:
    if not _LITELLM.exists():
        raise PeerMissingError("there is no .venv-litellm; `make bench PEERS=1` makes it")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        port, config = _port(), Path(place) / "litellm.yaml"
        params = f"{{model: openai/gpt-4o, api_base: '{provider.url}/v1', api_key: sk-key}}"
        config.write_text(f"model_list:\n- model_name: gpt-4o\n  litellm_params: {params}\n")
        words = ("--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False")
        alone = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        alone["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # no key is asked for
        env = {**_env(provider, Path(place)), **alone}
        async with _started(provider, (str(_LITELLM), *words), port, "/v1", env) as proxy:
            yield proxy


async def _serve_bare(target: str, port: int) -> None:
    async with _served(port, target):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve_bare(sys.argv[1], int(sys.argv[2])))
