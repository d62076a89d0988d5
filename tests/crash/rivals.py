"""Worker processes that get into each other's way: several that want the same jobs, and one that is frozen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from remit import CallContext, Remit, Run, recipe, tool
from remit.jobs.state import stream_of
from remit.journal.event import HeadQuery
from tests.crash.worker import WITNESS, settings, witness

OPEN = HeadQuery(kind="job", states=("pending", "running", "waiting"), limit=1)
OWN: list[Connection] = []
"""What connects a process that is going to be frozen with its parent."""


@tool("bank.pay", level="L1")
async def pay(ctx: CallContext) -> int:
    """Not idempotent; returns the process that did it."""
    await _beside(witness, "pay", ctx.idempotency_key)
    return os.getpid()


@tool("bank.file", level="L1", idempotent=True)
async def file(ctx: CallContext) -> int:
    """Idempotent; returns the process that did it."""
    await _beside(witness, "file", ctx.idempotency_key)
    return os.getpid()


async def _beside(act: Any, *given: str) -> None:
    """Do it; in a process that is going to be frozen, that happens right before or right after the act."""
    if not OWN:
        act(*given)
        return
    (connection,) = OWN
    moment = connection.recv()
    if moment == "after its effect":
        act(*given)
    connection.send("reached")
    await asyncio.to_thread(connection.recv)
    if moment == "before its effect":
        act(*given)


@recipe("pays")
async def pays(run: Run) -> int:
    """Pay once."""
    return int((await run.call("bank.pay")).value)


@recipe("files")
async def files(run: Run) -> int:
    """File once."""
    return int((await run.call("bank.file")).value)


def witnessed(folder: Path) -> list[str]:
    """Everything that happened."""
    path = folder / "witness"
    return path.read_text().splitlines() if path.exists() else []


def opened(folder: Path, **given: Any) -> Remit:
    """A Remit that knows these tools."""
    return Remit(settings=settings(folder), tools=[pay, file], recipes=[pays, files], **given)


def work_off(folder: str, begin: Any) -> None:
    """Work until no job is left; entry point of a process that races with others."""
    WITNESS.append(Path(folder) / "witness")

    async def main() -> None:
        begin.wait()
        async with opened(Path(folder)) as remit:
            mark = 0
            while await remit.runtime.journal.heads(OPEN):
                mark = await remit.runtime.journal.changed(mark)

    asyncio.run(main())


def work_until_frozen(folder: str, job: str, connection: Connection) -> None:
    """Work on a job, be frozen in the middle of its effect, go on, and tell how that ended; entry point."""
    OWN.append(connection)
    WITNESS.append(Path(folder) / "witness")

    async def main() -> None:
        async with opened(Path(folder), work=False) as remit:
            ended = remit.runtime.engine.ended(stream_of(job))
            remit.runtime.engine.start(only={stream_of(job)})
            connection.send((await ended).how)

    asyncio.run(main())


@contextmanager
def process(target: Any, *given: Any) -> Iterator[BaseProcess]:
    """A process that is gone at the end, whatever happens."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.crash.rivals"])
    started = context.Process(target=target, args=given)
    started.start()
    try:
        yield started
    finally:
        started.kill()
        started.join()
