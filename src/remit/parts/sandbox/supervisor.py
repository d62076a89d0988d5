"""A run whose isolation another program sets up: its output, its limits, its end. What the drivers but bwrap share.

The output of a program, read as it comes: any bytes, lines without an end, more than anyone wants.

Ends a run for a limit that it passed: its time, and what only looking finds out.

The input of a program: a file without a name, so that nothing has to be fed to it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from remit.clock import SystemClock
from remit.parts.sandbox.cgroups import Leaf
from remit.parts.sandbox.child import GroupChild
from remit.parts.sandbox.identity import UserIdentity
from remit.parts.sandbox.limits import ProcessUsage, look, size_of
from remit.process.enclosure import Listener, ProgramRun, Receipt, RunUsage, Spec, Status, Stream

_CHUNK: Final = 64 * 1024
_FLOOD: Final = 16
"""A program that writes so many times its limit is ended: it will not stop by itself."""


class PipeOutput:
    """One pipe's reader: keeps the first bytes, counts the rest."""

    def __init__(
        self, name: Literal["stdout", "stderr"], most: int | None, listener: Listener, flooded: Callable[[str], None]
    ) -> None:
        self.name = name
        self._most = most
        self._listener = listener
        self._flooded = flooded
        self._data = bytearray()
        self._total = 0
        self._ended = asyncio.Event()
        self._fd = -1
        self._loop = asyncio.get_running_loop()

    def belongs(self, most: int, listener: Listener) -> None:
        """Keep so much for a run that begins now; nothing was written yet."""
        self._most = most
        self._listener = listener

    def follow(self, fd: int) -> None:
        """Read from a pipe, which is then ours to close."""
        os.set_blocking(fd, False)
        self._fd = fd
        self._loop.add_reader(fd, self._read)

    async def ended(self) -> Stream:
        """All of it, once every program that held the pipe is gone."""
        await self._ended.wait()
        return Stream(bytes(self._data), self._total)

    def close(self) -> None:
        """Read no more."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._ended.set()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self._take(data)

    def _take(self, data: bytes) -> None:
        self._total += len(data)
        if self._most is None:
            self._listener(self.name, data)
            return
        wanted = data[: max(0, self._most - len(self._data))]
        if wanted:
            self._data += wanted
            with suppress(Exception):  # a listener that fails is no reason to lose output
                self._listener(self.name, wanted)
        if self._total > max(self._most, _CHUNK) * _FLOOD:
            self._flooded(f"{self.name}_bytes")


def outputs(spec: Spec, listener: Listener, flooded: Callable[[str], None]) -> tuple[PipeOutput, PipeOutput]:
    """The readers of a run's stdout and stderr."""
    lasts = spec.feed is not None
    return (
        PipeOutput("stdout", None if lasts else spec.limits.stdout_bytes, listener, flooded),
        PipeOutput("stderr", None if lasts else spec.limits.stderr_bytes, listener, flooded),
    )


_EVERY_S: Final = 0.05
_SELDOM_S: Final = 1.0
"""For a program that lasts."""
_SHARE: Final = 10
"""Measuring a workspace may take one part in so many of the time …"""
_MOST: Final = 20
"""… but is not put off for longer than so many looks: on a busy machine it takes long, and files go on coming."""


def wait_after(took: float, every: float) -> float:
    """Seconds from one measuring of a workspace to the next, if it took so long and looks come `every` so many."""
    return min(max(every, took * _SHARE), every * _MOST)


class RunWatch:
    """Watches one run, from when its program begins.

    Processes are watched from `first` on, and the workspace. Without `first` and `leaf` no process is watched:
    something else holds what they use.
    """

    def __init__(self, spec: Spec, first: int | None, leaf: Leaf | None, stop: Callable[[str], None]) -> None:
        self.usage: ProcessUsage | None = None
        """The most that was seen."""
        self.exceeded = ""
        """A limit that the run turned out to have passed once it was over."""
        self._spec = spec
        self._first = first
        self._leaf = leaf
        self._stop = stop
        self._clock = SystemClock()
        self._timer = asyncio.get_running_loop().call_later(spec.limits.wall_ms / 1000, stop, "wall_ms")
        self._task = asyncio.create_task(self._look(), name="remit:sandbox-watch")

    async def ended(self) -> None:
        """The run is over: look at its workspace once more, and no more after that."""
        self._timer.cancel()
        if self._task.done():
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        self.exceeded = await self._measured()

    async def _look(self) -> None:
        limits, measured = self._spec.limits, 0.0
        every = _EVERY_S if self._spec.feed is None else _SELDOM_S
        while True:
            await self._clock.sleep(every)
            used = self._used()
            if used.cpu_ms > limits.cpu_ms:
                self._stop("cpu_ms")
            elif used.memory_bytes > limits.memory_bytes:
                self._stop("memory_bytes")
            elif used.pids > limits.pids:
                self._stop("pids")
            began = self._clock.monotonic()
            if began >= measured:
                if excess := await self._measured():
                    self._stop(excess)
                took = self._clock.monotonic() - began
                measured = began + wait_after(took, every)

    async def _measured(self) -> str:
        """The limit that the workspace passed, if one did."""
        limits = self._spec.limits
        size, files = await asyncio.to_thread(size_of, self._spec.workspace)
        if size > limits.workspace_bytes:
            return "workspace_bytes"
        return "workspace_files" if files > limits.workspace_files else ""

    def _used(self) -> ProcessUsage:
        if self._leaf is not None:
            return ProcessUsage(self._leaf.counted().cpu_ms or 0, 0, 0)
        if self._first is None:
            return ProcessUsage(0, 0, 0)
        now, most = look(self._first), self.usage or ProcessUsage(0, 0, 0)
        self.usage = ProcessUsage(*map(max, zip(now, most, strict=True)))
        return now


def stdin_of(data: bytes, feed: int | None = None) -> int:
    """A descriptor that holds some bytes, or a copy of `feed`; the caller closes it."""
    if feed is not None:
        return os.dup(feed)
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("remit-stdin", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


_SIGNALLED: Final = 128


class Supervised:
    """A program that was started as a child of ours."""

    def __init__(self, spec: Spec, listener: Listener) -> None:
        self.limit = ""
        self._stopped = False
        self._spec = spec
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._child: GroupChild | None = None
        self._watch: RunWatch | None = None
        self._stdout, self._stderr = outputs(spec, listener, self.stop)

    def start(
        self,
        argv: Sequence[str],
        identity: UserIdentity,
        *,
        env: dict[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        folder: Path | None = None,
    ) -> None:
        """Start it, in this folder if one is given. Raises OSError; nothing is left open then."""
        stdin = stdin_of(self._spec.stdin, self._spec.feed)
        (out_r, out_w), (err_r, err_w) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        try:
            self._child = GroupChild.start(
                argv,
                stdin=stdin,
                stdout=out_w,
                stderr=err_w,
                pass_fds=pass_fds,
                identity=identity,
                env=env,
                folder=folder,
            )
        except BaseException:
            os.close(out_r)
            os.close(err_r)
            raise
        finally:
            for fd in (stdin, out_w, err_w):
                os.close(fd)
        self._stdout.follow(out_r)
        self._stderr.follow(err_r)
        self._watch = RunWatch(self._spec, self.first, None, self.stop)

    @property
    def first(self) -> int | None:
        """The process from which those of the program descend; None: it is not known."""
        return self._child.pid if self._child is not None else None

    def stop(self, limit: str) -> None:
        """Have it end, for a limit that was hit if one is named."""
        self.limit = self.limit or limit
        self._stopped = True
        if self._child is not None:
            self._child.kill()

    def signal(self, how: signal.Signals) -> None:
        """Send it a signal."""
        if self._child is not None:
            self._child.kill(how)

    async def ended(self, receipt: Receipt) -> ProgramRun:
        """Return how it ended."""
        if self._child is None or self._watch is None:
            raise AssertionError("the run was not started")
        code = await self._child.ended()
        wall = int((self._clock.monotonic() - self._began) * 1000)
        await self._watch.ended()
        stdout, stderr = await self._stdout.ended(), await self._stderr.ended()
        number = -code if code < 0 else code - _SIGNALLED
        name = signal.Signals(number).name if number in signal.valid_signals() else ""
        limit = self.limit or {"SIGXCPU": "cpu_ms", "SIGXFSZ": "file_bytes"}.get(name, "") or self._watch.exceeded
        used = self._watch.usage
        usage = (
            RunUsage(wall_ms=wall)
            if used is None
            else RunUsage(
                wall_ms=wall, cpu_ms=used.cpu_ms, memory_bytes=used.memory_bytes, mechanism="seen every 50 ms"
            )
        )
        return ProgramRun(
            status=_status(code, limit),
            exit_code=_SIGNALLED - code if code < 0 else code,
            signal=name,
            limit=limit,
            stdout=stdout,
            stderr=stderr,
            receipt=_with(receipt, usage),
        )

    async def close(self) -> None:
        """End it if it still runs, and leave nothing open."""
        self.stop("")
        if self._child is not None:
            await self._child.ended()
            self._child.close()
        if self._watch is not None:
            await self._watch.ended()
        self._stdout.close()
        self._stderr.close()


def _status(code: int, limit: str) -> Status:
    if limit == "wall_ms":
        return "TIMEOUT"
    return "SUCCEEDED" if code == 0 and not limit else "FAILED"


def _with(receipt: Receipt, usage: RunUsage) -> Receipt:
    return msgspec.structs.replace(receipt, usage=usage)
