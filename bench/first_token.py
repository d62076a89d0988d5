"""The first piece of a model's answer: when it is there, through the gate and bare."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Final

import aiohttp

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, against
from bench.subject import remit_in
from remit import Remit, Run, recipe
from remit.testing.models import ChatSpeech, ModelServer, Scene, Streamed

QUESTIONS: Final = 50
_SAID: Final = Streamed(events=ChatSpeech().events(Scene(text=("A", " short", " answer."))))
_BODY: Final = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Say something."}]}


class _Times:
    """When questions were asked, and when the first piece of each answer was there."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.heard: dict[str, float] = {}

    @property
    def median_ms(self) -> float:
        """Milliseconds from one to the other."""
        return statistics.median(
            (heard - asked) * 1_000 for asked, heard in zip(self.asked, self.heard.values(), strict=True)
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


async def _through_the_gate(lab: Lab, url: str) -> Reading:
    times = _Times()

    @recipe("bench.asks")
    async def asks(run: Run) -> None:
        for _ in range(QUESTIONS):
            times.asked.append(time.perf_counter())
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
        times.heard.setdefault(piece.step, time.perf_counter())


async def _bare(url: str) -> Reading:
    times = _Times()
    async with aiohttp.ClientSession() as client:
        for number in range(QUESTIONS):
            times.asked.append(time.perf_counter())
            async with client.post(f"{url}/chat/completions", json=_BODY) as response:
                async for line in response.content:
                    if line.startswith(b"data:"):
                        times.heard.setdefault(str(number), time.perf_counter())
    return Reading(times.median_ms)
