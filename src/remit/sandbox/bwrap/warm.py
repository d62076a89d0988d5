"""Sandboxes that were started ahead of their programs: an interpreter waits in each, with every limit set.

Each is used once, by one conversation, and ends with its program. It was made for one interpreter, its packages and the
limits that are set inside; it gets the script, its arguments, variables and stdin when it is used, and its own empty
workspace takes in what the conversation's holds, and takes its place.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from remit.clock import SystemClock
from remit.ids import new_id
from remit.process.enclosure import Listener
from remit.sandbox.bwrap.run import BwrapRun
from remit.sandbox.cgroups import Leaf
from remit.sandbox.identity import identity
from remit.sandbox.limits import Limits
from remit.sandbox.scratch import Scratch
from remit.sandbox.spec import INPUTS, WORKSPACE, Mount, Spec
from remit.sandbox.workspaces import take_place

_log: Final = logging.getLogger("remit.sandbox")
_BOOT: Final = Path(__file__).with_name("boot")
_BOOTS: Final = {"python3": "python.py", "python": "python.py", "node": "node.js", "nodejs": "node.js"}
_SCRIPTS: Final = {"python.py": (".py",), "node.js": (".js", ".cjs")}
_PLACE: Final = "/boot"
_AT_START: Final = ("PYTHON", "NODE_", "LD_", "MALLOC_", "GLIBC_")
"""Variables that an interpreter looks at when it starts."""
_INSIDE: Final = ("cpu_ms", "cpu_percent", "memory_bytes", "pids", "descriptors", "file_bytes", "tmp_bytes")
"""Limits that are set before the program begins; the others are held from outside."""
_IDLE_S: Final = 60.0
_PATIENCE_S: Final = 30.0
_PAUSE_S: Final = 0.02
"""A waiter for the run that has ended goes first."""
_MOST_ENTRIES: Final = 256
"""Files and folders at the top of a workspace; more take longer to move than a sandbox takes to start."""


class Key(NamedTuple):
    """The key of a sandbox, which it is started for; it is not used for anything else."""

    program: str
    mounts: tuple[Mount, ...]
    env: tuple[tuple[str, str], ...]
    limits: tuple[int, ...]


class Warm:
    """One sandbox that waits."""

    def __init__(self, key: Key, folder: Path) -> None:
        self.key = key
        self.scratch = Scratch(folder)
        self.leaf: Leaf | None = None
        self.run: BwrapRun | None = None
        self.stdin = os.memfd_create("remit-stdin", os.MFD_CLOEXEC)
        self.message = os.memfd_create("remit-command", os.MFD_CLOEXEC)
        self.reading, self.wake = os.pipe2(os.O_CLOEXEC)
        self.waits, self.waiting = os.pipe2(os.O_CLOEXEC)

    def spec(self) -> Spec:
        """Return what it runs until it is used."""
        boot = _BOOTS[Path(self.key.program).name]
        shutil.copy(_BOOT / boot, self.scratch.beside(_PLACE))
        inputs = self.scratch.beside(INPUTS)
        return Spec(
            id=new_id("run"),
            argv=(self.key.program, f"{_PLACE}/{boot}", *map(str, self.given())),
            workspace=self.scratch.work,
            env=dict(self.key.env),
            mounts=(*self.key.mounts, Mount(self.scratch.beside(_PLACE), _PLACE), Mount(inputs, INPUTS)),
            limits=Limits(**dict(zip(_INSIDE, self.key.limits, strict=True))),
        )

    def use(self, spec: Spec, listener: Listener) -> BwrapRun:
        """Have it become the program of `spec`; from now on only its conversation sees it. Raises OSError."""
        if self.run is None:
            raise AssertionError("it was not started")
        take_place(self.scratch.work, spec.workspace)
        os.pwrite(self.stdin, spec.stdin, 0)
        env = [f"{name}={value}" for name, value in spec.env.items() if not name.startswith(_AT_START)]
        words = [str(len(spec.argv)), *spec.argv, *env]
        os.pwrite(self.message, b"\0".join(os.fsencode(word) for word in words), 0)
        self.run.become(spec, listener)
        os.write(self.wake, b"x")
        return self.run

    async def up(self) -> None:
        """Return once its interpreter waits. Raises OSError if it ended instead."""
        os.close(self.waiting)
        self.waiting = -1
        said, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(self.waits, said.set)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await said.wait()
        finally:
            loop.remove_reader(self.waits)
        if not os.read(self.waits, 1):
            raise OSError("its interpreter did not start")

    def given(self) -> tuple[int, int, int]:
        """Descriptors that the program inherits."""
        return self.message, self.reading, self.waiting

    def close(self) -> None:
        """Close what is ours, once its run is closed."""
        for fd in (self.stdin, self.message, self.reading, self.wake, self.waits, self.waiting):
            with suppress(OSError):
                os.close(fd)
        self.scratch.close()


class WarmPool:
    """Sandboxes that wait; what was asked for last is kept ready."""

    def __init__(
        self, most: int, folder: Path, start: Callable[[Warm], Awaitable[None]], end: Callable[[Warm], Awaitable[None]]
    ) -> None:
        self._most = most
        self._folder = folder
        self._start = start
        self._end = end
        self._waiting: list[Warm] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._drain: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, key: Key) -> Warm | None:
        """One for this, which is the caller's from now on."""
        for one in self._waiting:
            if one.key == key and one.run is not None and one.run.waits:
                self._waiting.remove(one)
                return one
        return None

    def refill(self, key: Key) -> None:
        """Have one ready for this as soon as there is time; what has waited longest makes room."""
        if self._closed or any(one.key == key for one in self._waiting):
            return
        self._keep(asyncio.create_task(self._fill(key), name="remit:sandbox-warm"))

    async def filled(self) -> None:
        """Return once all that were asked for wait."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def drained(self) -> None:
        """End all that wait."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            await self._end(one)

    async def close(self) -> None:
        """End all that wait, and start no more."""
        self._closed = True
        if self._drain is not None:
            self._drain.cancel()
        await self.filled()
        await self.drained()

    async def _fill(self, key: Key) -> None:
        await SystemClock().sleep(_PAUSE_S)
        identity().make(self._folder)
        made = Warm(key, self._folder)
        try:
            await self._start(made)
        except BaseException:
            await self._end(made)
            raise
        self._waiting.append(made)
        while len(self._waiting) > self._most:
            await self._end(self._waiting.pop(0))
        self._stay()

    def _stay(self) -> None:
        """Seconds without a request after which none is kept."""
        if self._drain is not None:
            self._drain.cancel()
        loop = asyncio.get_running_loop()
        self._drain = loop.call_later(_IDLE_S, lambda: self._keep(loop.create_task(self.drained())))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("sandbox.warm.failed: %s", str(error)[:500])


def key_of(spec: Spec) -> Key | None:
    """Return what has to wait for such a run; None: it cannot be started ahead."""
    boot = _BOOTS.get(Path(spec.argv[0]).name)
    inputs = [mount for mount in spec.mounts if mount.target == INPUTS]
    script = spec.argv[1] if len(spec.argv) > 1 else ""
    if (
        boot is None
        or not script.endswith(_SCRIPTS[boot])
        or script.startswith("-")
        or spec.feed is not None
        or spec.network
        or spec.cwd != WORKSPACE
        or any("\0" in word for word in (*spec.argv, *spec.env, *spec.env.values()))
        or any(os.listdir(mount.source) for mount in inputs)
        or len(os.listdir(spec.workspace)) > _MOST_ENTRIES
    ):
        return None
    return Key(
        spec.argv[0],
        tuple(mount for mount in spec.mounts if mount.target != INPUTS),
        tuple(sorted((name, value) for name, value in spec.env.items() if name.startswith(_AT_START))),
        tuple(getattr(spec.limits, name) for name in _INSIDE),
    )
