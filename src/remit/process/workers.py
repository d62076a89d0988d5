"""Processes that parse what comes from strangers: a few, kept, and killed where a job takes too much time or memory."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

import msgspec

from remit.process.child import ChildProcess
from remit.process.worker import LENGTH

A = TypeVar("A")

_PASSED: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
"""The variables that a worker is given: what it parses comes from strangers."""
_JOBS: Final = 200
"""Jobs after which a worker is started again: its memory does not shrink."""


class _Worker(ChildProcess):
    """One process, which answers one job at a time."""

    def __init__(self) -> None:
        super().__init__(grace_s=0.0)
        self._buffer = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self.jobs = 0

    async def ask(self, job: msgspec.Struct) -> bytes:
        """Return the answer to a job. Raises ConnectionError where the process ends instead."""
        self.jobs += 1
        answer = self._answer = asyncio.get_running_loop().create_future()
        encoded = msgspec.msgpack.encode(job)
        self.write(LENGTH.pack(len(encoded)) + encoded)
        data: bytes = await answer
        return data

    def heard(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < LENGTH.size or self._answer is None or self._answer.done():
            return
        end = LENGTH.size + LENGTH.unpack_from(self._buffer)[0]
        if len(self._buffer) >= end:
            self._answer.set_result(bytes(self._buffer[LENGTH.size : end]))
            del self._buffer[:end]

    def exited(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the process ended"))


class WorkerPool(Generic[A]):
    """Has jobs done in at most so many processes at once, each of which runs a module that calls `answer_jobs`."""

    def __init__(self, module: str, answer: type[A] | Any, processes: int = 2, seconds: float = 20.0) -> None:
        self._module = module
        self._decoder = msgspec.msgpack.Decoder[A](answer)
        self._free: list[_Worker] = []
        self._slots = asyncio.Semaphore(processes)
        self._seconds = seconds
        self._closed = False

    async def ask(self, job: msgspec.Struct) -> A:
        """Return the answer to a job. Raises TimeoutError, or ConnectionError where it took too much memory."""
        async with self._slots:
            worker = await self._idle()
            whole = False
            try:
                async with asyncio.timeout(self._seconds):
                    answer: A = self._decoder.decode(await worker.ask(job))
                whole = worker.jobs < _JOBS and not self._closed
            finally:
                if whole:
                    self._free.append(worker)
                else:
                    await worker.close()
            return answer

    async def close(self) -> None:
        """End every process; may be called twice."""
        self._closed = True
        while self._free:
            with suppress(ProcessLookupError):
                await self._free.pop().close()

    async def _idle(self) -> _Worker:
        """Return a process that waits for a job; one that ended while it had none says nothing of the next job."""
        while self._free:
            worker = self._free.pop()
            if worker.exit_status is None:
                return worker
            await worker.close()
        return await self._started()

    async def _started(self) -> _Worker:
        worker = _Worker()
        env = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # without -P, modules of the folder that Remit was started in would come first
        await worker.start([sys.executable, "-P", "-m", self._module], env=env)
        return worker
