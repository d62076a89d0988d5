"""The first piece of a model's answer: when it is there, through the gate and bare, alone and among 64."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import msgspec

from bench.lab import ROOT, Lab
from bench.measure import Mark, Reading, Result, Watch, against
from bench.subject import remit_in
from remit import Remit, Run, recipe
from remit_testing.models import ChatSpeech, ModelServer, Scene, Streamed

QUESTIONS: Final = 50
AGENTS, EACH, TOKENS, ROUNDS = 64, 4, 50, 3
_SAID: Final = Streamed(events=ChatSpeech().events(Scene(text=("A", " short", " answer."))))
_BODY: Final = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Say something."}]}


class _Times:
    """When questions were asked, and when the first piece of each answer was there."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.first: dict[str, float] = {}

    @property
    def median_ms(self) -> float:
        """Milliseconds from one to the other."""
        return statistics.median(
            (end - start) * 1_000 for start, end in zip(self.begun, self.first.values(), strict=True)
        )


async def first_token(lab: Lab) -> list[Result]:
    """Milliseconds from a question to the first piece of its answer, for anyone who watches the job."""
    async with ModelServer(lambda _received: _SAID).listening() as server:
        return await against(
            "first piece of an answer",
            "ms",
            lambda: _through_the_gate(lab, server.url),
            lambda: _bare(server.url),
            "floor: the same request by aiohttp",
            mark=Mark(3.0),
            rounds=3,
        )


async def first_token_of_64(lab: Lab) -> list[Result]:
    """The same for 64 agents whose models all stream at once, without the time that the models think."""
    async with _thinking() as url:
        return await against(
            "first piece, 64 agents streaming",
            "ms",
            lambda: _agents(lab, url),
            lambda: _clients(url),
            "floor: the same 64 streams by aiohttp",
            mark=Mark(3.0),
            rounds=ROUNDS,
        )


@asynccontextmanager
async def _thinking() -> AsyncIterator[str]:
    """A model in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.token_server", str(TOKENS), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


async def _agents(lab: Lab, url: str) -> Reading:
    added: list[float] = []

    @recipe("bench.talks")
    async def talks(run: Run) -> None:
        for _ in range(EACH):
            begun.setdefault(run.job_id, []).append(time.perf_counter())
            await run.model("Say something.", model=f"openai-compatible:{url}#m")

    async def listen(job: str) -> None:
        jobs: set[str] = set()
        async for piece in remit.service.streams.said(job):
            if piece.step not in jobs:
                now = time.perf_counter()
                jobs.add(piece.step)
                if len(jobs) > 1:  # before their first answers all ask in the same moment, and much is imported
                    added.append((now - begun[job][-1]) * 1_000 - float(piece.delta.text))

    begun: dict[str, list[float]] = {}
    async with remit_in(lab.folder, recipes=[talks]) as remit:
        jobs = await asyncio.gather(*(remit.start(talks()) for _ in range(AGENTS)))
        listening = [asyncio.create_task(listen(job.id)) for job in jobs]
        watch = Watch()
        await asyncio.gather(*(job.result() for job in jobs))
        cpu = watch.rate(AGENTS * EACH).cpu_us
        for listener in listening:
            listener.cancel()
        await asyncio.wait(listening)
    return Reading(statistics.median(added), cpu)


async def _clients(url: str) -> Reading:
    added: list[float] = []

    async def talk() -> None:
        for number in range(EACH):
            begun, is_heard = time.perf_counter(), not number
            async with client.post(f"{url}/chat/completions", json=_BODY) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        chunk = msgspec.json.decode(line[6:])
                        if not is_heard:
                            text = chunk["choices"][0]["delta"]["content"]
                            added.append((time.perf_counter() - begun) * 1_000 - float(text))
                            is_heard = True

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        watch = Watch()
        await asyncio.gather(*(talk() for _ in range(AGENTS)))
    return Reading(statistics.median(added), watch.rate(AGENTS * EACH).cpu_us)


async def _through_the_gate(lab: Lab, url: str) -> Reading:
    times = _Times()

    @recipe("bench.asks")
    async def asks(run: Run) -> None:
        for _ in range(QUESTIONS):
            times.begun.append(time.perf_counter())
            await run.model("Say something.", model=f"openai-compatible:{url}#m")

    async with remit_in(lab.folder, recipes=[asks]) as remit:
        job = await remit.start(asks())
        listening = asyncio.create_task(_listen(remit, job.id, times))
        await job.result()
        listening.cancel()
        await asyncio.wait([listening])
    return Reading(times.median_ms)


async def _listen(remit: Remit, job: str, times: _Times) -> None:
    async for piece in remit.service.streams.said(job):
        times.first.setdefault(piece.step, time.perf_counter())


async def _bare(url: str) -> Reading:
    times = _Times()
    async with aiohttp.ClientSession() as client:
        for number in range(QUESTIONS):
            times.begun.append(time.perf_counter())
            async with client.post(f"{url}/chat/completions", json=_BODY) as response:
                async for line in response.content:
                    if line.startswith(b"data:"):
                        times.first.setdefault(str(number), time.perf_counter())
    return Reading(times.median_ms)
