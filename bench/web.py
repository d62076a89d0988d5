"""The web: texts beside the bare extractor, the cost of a bomb, and a report beside the reading of its pages."""

from __future__ import annotations

import asyncio
import gzip
import random
import re
import resource
import sys
import time
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from bench.lab import ROOT, Lab
from bench.measure import Mark, Reading, Result, against
from bench.subject import remit_in
from remit.parts.recipes.research_report import research_report
from remit.parts.web.extraction import ExtractionJob, extract
from remit.parts.web.fetcher import Fetcher

PAGES, SOURCES = 40, 10
"""Pages of a measurement; sources of a report, which reads twice as many."""
_BOMB: Final = 1_000_000_000
_LIMIT: Final = 5_000_000
_TEXT: Final = """
the a of and in to that is for with as by on at from town council harbour budget winter report members water
decided wrote opened closed built found large small early late public yearly clear new old
"""
_STATUS: Final = Path("/proc/self/status")
_QUERY: Final = "when was the bridge of the harbour built"


def article(number: int) -> str:
    """A page of the usual 100 kB: menus, forty paragraphs with links, a table, cards; the same for the same number."""
    chance = random.Random(number)
    links = "".join(
        f'<li class="menu__item menu__item--{n % 3}"><a class="menu__link" href="/page/{n}" data-at="{n}">'
        f"<span>{_sentence(chance, 3)}</span></a></li>"
        for n in range(150)
    )
    paragraphs = "".join(
        f'<p class="text text--body">{_sentence(chance, 14)} <a href="/page/{n}">{_sentence(chance, 3)}</a> '
        f"<em>{_sentence(chance, 4)}</em> {_sentence(chance, 14)} {_sentence(chance, 14)}</p>"
        for n in range(40)
    )
    rows = "".join(f"<tr><td>{_sentence(chance, 2)}</td><td>{chance.random():.3f}</td></tr>" for _ in range(20))
    cards = "".join(
        f'<div class="card card--{n}"><img src="/i/{n}.jpg" alt=""><div class="card__body">'
        f'<h3><a href="/page/{n}">{_sentence(chance, 5)}</a></h3><p>{_sentence(chance, 9)}</p></div></div>'
        for n in range(60)
    )
    return (
        f"<!doctype html><html lang='en'><head><title>Harbour {number}</title><style>p {{ margin: 0 }}</style>"
        f"<script>var x = {number};</script></head><body><header><nav><ul>{links}</ul></nav></header><main><article>"
        f"<h1>Harbour {number}</h1><p>The bridge of the harbour was built in {1_800 + number}.</p>{paragraphs}"
        f"<h2>Figures</h2><table>{rows}</table></article><aside>{cards}</aside></main>"
        f"<footer><ul>{links}</ul></footer></body></html>"
    )


def _sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_TEXT.split(), k=words)).capitalize() + "."


# --- extraction


async def extracted(_: Lab) -> list[Result]:
    """Main texts as a worker finds them, beside trafilatura alone; pages for each second of a processor."""
    pages = [article(number) for number in range(PAGES)]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        loop = asyncio.get_running_loop()

        async def sample() -> Reading:
            return Reading(len(pages) / await loop.run_in_executor(pool, _ours, pages))

        async def floor() -> Reading:
            return Reading(len(pages) / await loop.run_in_executor(pool, _bare, pages))

        await sample()  # what they import counts for neither
        note = "floor: trafilatura alone; both by processor time in one process"
        return await against("extraction", "per second", sample, floor, note, mark=Mark(0.9, "floor"))


def _ours(pages: Sequence[str]) -> float:
    """Seconds of a processor that an answer of a worker takes for each page."""
    began = time.process_time()
    for page in pages:
        msgspec.msgpack.encode(extract(ExtractionJob(page, "http://a.example/")))
    return time.process_time() - began


def _bare(pages: Sequence[str]) -> float:
    """Seconds of a processor that trafilatura takes."""
    import trafilatura  # noqa: PLC0415 - in the process that is measured

    began = time.process_time()
    for page in pages:
        trafilatura.extract(
            page, url="http://a.example/", output_format="markdown", include_comments=False, include_tables=True
        )
    return time.process_time() - began


# --- a bomb


async def bombed(_: Lab) -> list[Result]:
    """Memory that a page of a megabyte takes whose text is a gigabyte, in a process of its own."""

    async def sample() -> Reading:
        async with _site({"/page": _bomb(), "/small": gzip.compress(b"hello")}, {"content-encoding": "gzip"}) as base:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bench.web", base, cwd=ROOT, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await process.communicate()
        return Reading(float(output))

    note = "peak while it is fetched, beside the peak before"
    return await against("gzip bomb of 1 GB", "kB", sample, None, note, mark=Mark(20_000), rounds=1)


def _bomb() -> bytes:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    piece = b"\0" * 1_000_000
    return b"".join(packer.compress(piece) for _ in range(_BOMB // len(piece))) + packer.flush()


async def _fetch_bomb(base: str) -> int:
    """Kilobytes by which the peak of this process grows."""
    fetcher = Fetcher(private=(base.removeprefix("http://"),))
    await fetcher.fetch(f"{base}/small", seconds=60, limit=_LIMIT)
    before = _peak()
    await fetcher.fetch(f"{base}/page", seconds=60, limit=_LIMIT)
    await fetcher.close()
    return _peak() - before


def _peak() -> int:
    """The most that this process has had in memory, in kilobytes."""
    if _STATUS.exists():  # what getrusage says includes the process that started this one
        return int(re.findall(r"VmHWM:\s*(\d+)", _STATUS.read_text(encoding="ascii"))[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# --- a report


async def reported(lab: Lab) -> list[Result]:
    """A report on twenty pages, beside what searching, fetching and extracting take of it."""
    inside: list[float] = []
    pages = {f"/page/{number}": article(number).encode() for number in range(2 * SOURCES)}
    async with _site(pages) as base:

        async def sample() -> Reading:
            flags = {"web.search": ("searxng",), "web.searxng_url": base, "web.pause_ms": 1}
            async with remit_in(lab.folder, flags=flags) as remit:
                await remit.run(research_report(_QUERY, web=True, max_sources=1))  # starts the workers
                began = time.perf_counter()
                job = await remit.start(research_report(_QUERY, web=True, max_sources=SOURCES))
                await job
                took = (time.perf_counter() - began) * 1e3
                steps = (await remit.service.jobs.view(job.id)).steps
            spans = [(step.started_at, step.duration_us) for step in steps if step.name.startswith("tool.web.")]
            inside.append(_covered(spans) / 1e3)
            return Reading(took)

        async def floor() -> Reading:
            return Reading(inside[-1])

        note = "floor: its steps of web.search and web.extract; 1.333 is a quarter outside of them"
        return await against("report on 20 pages", "ms", sample, floor, note, mark=Mark(1.333, "floor"))


def _covered(spans: Sequence[tuple[int, int]]) -> int:
    """Microseconds in which at least one of them was under way, given as their beginnings and lengths."""
    covered = end = 0
    for begin, length in sorted(spans):
        covered += max(0, begin + length - max(begin, end))
        end = max(end, begin + length)
    return covered


@asynccontextmanager
async def _site(pages: Mapping[str, bytes], headers: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """Pages by path, and a search that finds ten others for each question."""
    queries: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(status=404)
        if request.path != "/search":
            return web.Response(body=pages[request.path], headers={"content-type": "text/html", **(headers or {})})
        query = request.query["q"]
        queries.extend([query] * (query not in queries))
        first = 10 * queries.index(query)
        results = [{"url": f"{base}{path}", "title": path} for path in list(pages)[first : first + 10]]
        return web.json_response({"results": results})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield base
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    print(asyncio.run(_fetch_bomb(sys.argv[1])))
