"""The console: how soon a page is there, and how soon and how cheaply many open pages learn of an event."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Final
from urllib.parse import quote

import msgspec

from bench.api import connected, cpu_us
from bench.lab import Lab
from bench.measure import Mark, Reading, Result, against
from remit import Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.http.access import RequestPlaces
from remit.http.guard import Guard
from remit.http.router import PartMount, Router
from remit.http.server import listen, serve
from remit.jobs.state import KIND, stream_of
from remit.journal.event import HeadPatch
from remit.journal.journal import Journal
from remit.journal.kinds import JobCreated
from remit.journal.sqlite.store import SqliteStore
from remit.pages.entry import ConsoleEntry
from remit.pages.part import ConsolePages
from remit.pages.table import PAGES
from remit.settings import load

STEPS, JOBS, OPEN_PAGES, EVENTS, PACE_S = 10_000, 100_000, 200, 10, 1.0
_SEEN: Final = re.compile(rb"at ([0-9]{6,})")
_PAINT: Final = """() => new Promise((done) => new PerformanceObserver((list) => {
    const found = list.getEntries().find((one) => one.name == "first-contentful-paint");
    if (found) done(found.startTime);
}).observe({type: "paint", buffered: true}))"""
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


@tool("desk.look", level="L0")
async def look(what: str) -> str:
    """Look something up."""
    return what


@tool("desk.see", level="L0")
async def see(what: str) -> str:
    """See something."""
    return what


@recipe("many")
async def many(run: Run, count: int) -> int:
    """Make steps as fast as they go; two tools in turn, so that none are shown as one."""
    for number in range(count):
        await run.call("desk.see" if number % 2 else "desk.look", {"what": f"number {number}"})
    return count


@recipe("paced")
async def paced(run: Run) -> None:
    """Make a step now and then, each with the time at which it was made, until the process is ended."""
    for number in itertools.count():
        await SystemClock().sleep(PACE_S)
        what = f"at {time.monotonic_ns()}"
        await run.call("desk.see" if number % 2 else "desk.look", {"what": what})


def remit_in(folder: str) -> Remit:
    """A Remit over the journal in a folder."""
    flags = {"journal.url": str(Path(folder) / "journal.db"), "app.principal": "bench"}
    return Remit(settings=load(cwd=Path(folder), env={}, flags=flags), tools=[look, see], recipes=[many, paced])


def run_pages(folder: str, port: int) -> None:
    """Serve the pages until killed; the entry point of a process."""

    async def main() -> None:
        clock = SystemClock()
        guard, places = Guard.of("127.0.0.1", (), (), clock), RequestPlaces(1_000)
        async with remit_in(folder) as remit:
            entry = ConsoleEntry(guard, clock)
            pages = ConsolePages(remit.service, PAGES, entry, places, clock)
            with listen("127.0.0.1", port) as listening:
                await serve(Router(guard, [PartMount("/", pages, None, entry.admit)]), listening, asyncio.Event())

    asyncio.run(main())


def run_paced(folder: str) -> None:
    """Run a job that makes a step now and then; the entry point of a process."""

    async def main() -> None:
        async with remit_in(folder) as remit:
            await (await remit.start(paced()))

    asyncio.run(main())


@contextmanager
def pages_of(folder: Path) -> Iterator[tuple[int, int]]:
    """Port and process of a server of the pages over the journal in a folder."""
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    with _process(run_pages, str(folder), port) as pid:
        yield port, pid


@contextmanager
def _process(target: object, *args: object) -> Iterator[int]:
    process = multiprocessing.get_context("spawn").Process(target=target, args=args)  # type: ignore[arg-type]
    process.start()
    try:
        yield process.pid or 0
    finally:
        process.kill()
        process.join()


async def got(port: int, path: str) -> float:
    """Milliseconds until a page was there, whole."""
    async with connected(port) as (reader, writer):
        began = time.perf_counter()
        writer.write(b"GET %b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nconnection: close\r\n\r\n" % (path.encode(), port))
        page = await reader.read(-1)
        took = (time.perf_counter() - began) * 1_000
    assert page.startswith(b"HTTP/1.1 200"), page[:200]
    assert b"</html>" in page
    return took


async def page_of_steps(lab: Lab) -> list[Result]:
    """The page of a job with 10,000 steps, the first time that anyone looks at it."""
    folder = lab.folder / "console-steps"
    folder.mkdir()
    async with remit_in(str(folder)) as remit:
        small, large = [await remit.start(many(count=count)) for count in (10, STEPS)]
        await asyncio.gather(small, large)

    async def ours() -> Reading:
        with pages_of(folder) as (port, pid):
            await got(port, f"/jobs/{small.id}")
            before = cpu_us(pid)
            took = await got(port, f"/jobs/{large.id}")
            return Reading(took, cpu_us(pid) - before)

    try:
        return await against("console, a job of 10,000 steps", "ms", ours, None, mark=Mark(500))
    finally:
        shutil.rmtree(folder)


async def pages_of_jobs(lab: Lab) -> list[Result]:
    """The overview and the list of jobs over 100,000 jobs, and when a browser has painted it."""
    folder, results = lab.folder / "console-jobs", list[Result]()
    folder.mkdir()
    await _fill(folder / "journal.db")
    try:
        with pages_of(folder) as (port, pid):
            for name, path in (("overview", "/"), ("list of jobs", "/jobs"), ("jobs by recipe", "/jobs?recipe=rare")):
                await got(port, path)

                async def ours(path: str = path) -> Reading:
                    before = cpu_us(pid)
                    return Reading(await got(port, path), cpu_us(pid) - before)

                results += await against(f"console, {name}, 100,000 jobs", "ms", ours, None, mark=Mark(100))
            results += await _painted(f"http://127.0.0.1:{port}/jobs")
    finally:
        shutil.rmtree(folder)
    return results


async def _painted(url: str) -> list[Result]:
    """The first paint of a page in Chromium, where there is one."""
    from playwright.async_api import async_playwright  # noqa: PLC0415 - only where a browser is measured

    program = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        return []
    async with async_playwright() as playwright:
        # Chromium loads no page by libfaketime's clock: it has the machine's date.
        env: dict[str, str | float | bool] = {n: v for n, v in os.environ.items() if n != "LD_PRELOAD"}
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], env=env)
        page = await browser.new_page()
        await page.goto(url)

        async def painted(address: str) -> Reading:
            await page.goto(address)
            return Reading(await page.evaluate(_PAINT))

        async with _bare() as bare:
            name = "console, first paint, 100,000 jobs"
            try:
                return await against(
                    name, "ms", lambda: painted(url), lambda: painted(bare), "floor: a page of one line", mark=Mark(100)
                )
            finally:
                await browser.close()


@asynccontextmanager
async def _bare() -> AsyncIterator[str]:
    """The address of a page of one line."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<!doctype html><p>Hello")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def _fill(path: Path) -> None:
    """A journal with so many jobs that have ended; a few of them run a recipe that few do."""
    clock = SystemClock()
    journal = Journal(SqliteStore(str(path), clock))
    for number in range(JOBS):
        name = "rare" if number % 10_000 == 0 else "many"
        created = JobCreated(kind="recipe", name=name, principal="bench")
        patch = HeadPatch(
            state="completed",
            closed=True,
            title=f"{name} number {number}",
            labels={"remit.name": name, "n": str(number)},
        )
        writer = journal.writer(stream_of(f"job_{number:026}"), KIND)
        await journal.append(writer, created, synced=False, patch=patch)
    await journal.drained()
    await journal.close()


async def open_pages(lab: Lab) -> list[Result]:
    """200 pages of one running job: from before a step until each page has it, and what they cost the server."""
    used, medians = list[float](), list[float]()

    async def ours() -> Reading:
        folder = lab.folder / f"console-live-{len(used)}"
        folder.mkdir()
        async with opened_job(folder) as (port, pid, job):
            waits, share = await _followed(port, pid, job)
        shutil.rmtree(folder)
        used.append(share)
        percentiles = quantiles(waits, n=100)
        medians.append(percentiles[49])
        return Reading(percentiles[94])

    name = f"console, an event on {OPEN_PAGES} pages, p95"
    (late,) = await against(name, "ms", ours, None, mark=Mark(200), rounds=3)
    late = msgspec.structs.replace(late, note=f"p50 {median(medians):.0f} ms")

    async def cost() -> Reading:
        return Reading(used.pop())

    note = f"a step every {PACE_S:g} s"
    return [late] + await against(
        f"console, {OPEN_PAGES} open pages", "% of a core", cost, None, note, mark=Mark(10), rounds=len(used)
    )


@asynccontextmanager
async def opened_job(folder: Path) -> AsyncIterator[tuple[int, int, str]]:
    """A job that makes a step now and then, and a server of the pages: port, process, job."""
    with pages_of(folder) as (port, pid):
        await got(port, "/jobs")
        with _process(run_paced, str(folder)):
            async with remit_in(str(folder)) as remit:
                mark = 0
                while not (rows := await remit.service.jobs.rows(("running",))):
                    mark = await remit.service.streams.changed(mark)
                yield port, pid, rows[0].job


async def _followed(port: int, pid: int, job: str) -> tuple[list[float], float]:
    """How late each step was on each page, in milliseconds, and the server's share of a core meanwhile, in percent."""
    waits, ready, counted, enough = list[float](), asyncio.Semaphore(0), asyncio.Event(), asyncio.Event()

    async def follow() -> None:
        async with connected(port) as (reader, writer):
            path = f"/live?page={quote(f'/jobs/{job}', safe='')}"
            writer.write(b"GET %b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % (path.encode(), port))
            last = b""
            while True:
                line = await reader.readline()
                if not line:
                    return
                now = time.monotonic_ns()
                numbers = _SEEN.findall(line)
                if b'"step-rows"' in line and not last:
                    ready.release()
                    last = max(numbers, default=b"0")
                if numbers and max(numbers) > last:
                    last = max(numbers)
                    if counted.is_set():
                        waits.append((now - int(last)) / 1e6)
                    if len(waits) >= EVENTS * OPEN_PAGES:
                        enough.set()

    await got(port, f"/jobs/{job}")  # as a browser does before it listens
    tasks = [asyncio.create_task(follow()) for _ in range(OPEN_PAGES)]
    for _ in tasks:
        await ready.acquire()
    counted.set()
    before, began = cpu_us(pid), time.perf_counter()
    await enough.wait()
    share = (cpu_us(pid) - before) / (time.perf_counter() - began) / 1e6 * 100
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return waits, share
