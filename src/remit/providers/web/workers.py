"""Processes that extract text: a few, kept, and killed where a page takes too much time or memory of theirs."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Final

import msgspec

from remit.codes import Code
from remit.process.child import Child
from remit.providers.web.extraction import LENGTH, Extract, Job
from remit.providers.web.faults import WebError

_PASSED: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
"""What a worker is given of the environment: what it parses comes from strangers."""
_PAGES: Final = 200
"""Pages after which a worker is started again: its memory does not shrink."""


class _Worker(Child):
    """One process, which answers one page at a time."""

    def __init__(self) -> None:
        super().__init__(grace_s=0.0)
        self._buffer = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self.pages = 0

    async def ask(self, job: Job) -> Extract:
        """Return the text of a page. Raises ConnectionError where the process ends instead."""
        self.pages += 1
        answer = self._answer = asyncio.get_running_loop().create_future()
        encoded = msgspec.msgpack.encode(job)
        self.write(LENGTH.pack(len(encoded)) + encoded)
        return msgspec.msgpack.decode(await answer, type=Extract)

    def heard(self, data: bytes) -> None:
        """Collect an answer; nothing of it is kept as a tail."""
        self._buffer += data
        if len(self._buffer) < LENGTH.size or self._answer is None or self._answer.done():
            return
        end = LENGTH.size + LENGTH.unpack_from(self._buffer)[0]
        if len(self._buffer) >= end:
            self._answer.set_result(bytes(self._buffer[LENGTH.size : end]))
            del self._buffer[:end]

    def exited(self) -> None:
        """Tell the page's caller."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the process ended"))


class Extractors:
    """Extracts text in at most so many processes at once."""

    def __init__(self, processes: int = 2, seconds: float = 20.0) -> None:
        """Give each page at most `seconds` of a process."""
        self._free: list[_Worker] = []
        self._slots = asyncio.Semaphore(processes)
        self._seconds = seconds
        self._closed = False

    async def extract(self, html: str, url: str) -> Extract:
        """Return the main text of a page. Raises WebError (parse_failed) for one that takes too much."""
        async with self._slots:
            worker = self._free.pop() if self._free else await _started()
            whole = False
            try:
                async with asyncio.timeout(self._seconds):
                    extract = await worker.ask(Job(html, url))
                whole = worker.pages < _PAGES and not self._closed
            except TimeoutError as error:
                why = f"{url}: its text was not found within {self._seconds:g} s"
                raise WebError(why, Code.parse_failed) from error
            except ConnectionError as error:
                raise WebError(f"{url}: finding its text took too much memory", Code.parse_failed) from error
            finally:
                if whole:
                    self._free.append(worker)
                else:
                    await worker.close()
            return extract

    async def close(self) -> None:
        """End every process; may be called twice."""
        self._closed = True
        while self._free:
            with suppress(ProcessLookupError):
                await self._free.pop().close()


async def _started() -> _Worker:
    worker = _Worker()
    env = {name: os.environ[name] for name in _PASSED if name in os.environ}
    await worker.start([sys.executable, "-m", "remit.providers.web.extraction"], env=env)
    return worker
