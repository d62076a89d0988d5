"""Runs programs of the operator's own in the sandbox: an MCP server, or a tool that is a function (rule 9).

They see their own installation, the roots that they were given under their own paths, and a home. Nothing else of the
machine, and no network but the hosts of their terms.

A program that lasts in the sandbox, as asyncio knows processes: a transport, driven for a subprocess protocol.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from remit.ids import new_id
from remit.parts.sandbox.commands import Finder
from remit.parts.sandbox.driver import Driver
from remit.parts.sandbox.identity import CLOSED, identity, reachable
from remit.parts.sandbox.limits import tightened
from remit.parts.sandbox.policy import PORTS, SandboxPolicy, read
from remit.parts.sandbox.sandbox import Sandbox
from remit.parts.sandbox.scratch import ScratchFolder, scratch
from remit.process.enclosure import (
    WORKSPACE,
    ConnectionAttempt,
    FolderMount,
    Listener,
    LooserError,
    Program,
    ProgramRun,
    SandboxTerms,
    SandboxUnavailableError,
    Spec,
)


class RunFed(Protocol):
    """Runs a program to its end."""

    def __call__(self, listener: Listener, *, feed: int) -> Coroutine[Any, Any, ProgramRun]:
        """Hand its output to `listener`; it reads the descriptor `feed`."""
        ...


_STREAMS: Final = {"stdout": 1, "stderr": 2}
_NOT_RUN: Final = 126


class LastingProgram(asyncio.SubprocessTransport):
    """One program. A signal of any kind ends it: within the sandbox nothing of ours could pass it on."""

    def __init__(self, protocol: asyncio.SubprocessProtocol, stdin: asyncio.WriteTransport) -> None:
        super().__init__()
        self._protocol = protocol
        self._stdin = stdin
        self._code: int | None = None
        self._task: asyncio.Task[ProgramRun] | None = None
        self._killed = False

    @classmethod
    async def start(cls, run: RunFed, protocol: asyncio.SubprocessProtocol) -> asyncio.SubprocessTransport:
        """Run a program, whose stdin, output and end the protocol is told of. Raises OSError."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            stdin, _ = await asyncio.get_running_loop().connect_write_pipe(
                lambda: _Feed(protocol), os.fdopen(writing, "wb", 0)
            )
        except BaseException:
            os.close(reading)
            raise
        program = cls(protocol, stdin)
        protocol.connection_made(program)
        program._run(run, reading)
        return program

    def get_pid(self) -> int:
        """0: its processes have numbers of their own."""
        return 0

    def get_returncode(self) -> int | None:
        """Its exit code, negative for the signal that ended it; None while it runs."""
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """Return what writes to its stdin."""
        return self._stdin if fd == 0 else None

    def send_signal(self, signal: int) -> None:  # noqa: ARG002 - asyncio's signature
        """End it."""
        self.kill()

    def terminate(self) -> None:
        """End it."""
        self.kill()

    def kill(self) -> None:
        """End it."""
        if (
            self._task is not None and not self._killed
        ):  # a second cancellation would interrupt the driver's cleaning up
            self._killed = True
            self._task.cancel()

    def close(self) -> None:
        """End it."""
        self._shut()
        self.kill()

    def is_closing(self) -> bool:
        """Return whether it has ended."""
        return self._code is not None

    def _run(self, run: RunFed, feed: int) -> None:
        def over(task: asyncio.Task[ProgramRun]) -> None:
            os.close(feed)
            if task.cancelled():
                self._over(-signal.SIGKILL)
            elif (error := task.exception()) is not None:
                self._heard("stderr", f"{error}\n".encode())
                self._over(_NOT_RUN)
            else:
                self._over(_code_of(task.result()))

        self._task = asyncio.create_task(run(self._heard, feed=feed), name="remit:sandbox-lasting")
        self._task.add_done_callback(over)

    def _over(self, code: int) -> None:
        self._code = code
        for fd in _STREAMS.values():
            self._protocol.pipe_connection_lost(fd, None)
        self._protocol.process_exited()
        self._shut()
        self._protocol.connection_lost(None)

    def _shut(self) -> None:
        if not self._stdin.is_closing():  # asyncio's transport cannot be aborted twice
            self._stdin.abort()

    def _heard(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        self._protocol.pipe_data_received(_STREAMS[stream], data)


class _Feed(asyncio.BaseProtocol):
    """Tells the program's protocol of its stdin."""

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        self._protocol = protocol

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.pipe_connection_lost(0, exc)


def _code_of(execution: ProgramRun) -> int:
    if execution.signal:
        return -signal.Signals[execution.signal].value
    return execution.exit_code or 0


_YEAR_MS: Final = 365 * 24 * 3_600_000
"""The time of a program that lasts, if its terms say nothing."""
_HOME_FILES: Final = 100_000
"""A home keeps what a program caches; it is never walked as a workspace is."""
_TIMES: Final = ("wall_ms", "cpu_ms")
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_LOOPBACK: Final = ("localhost", "127.0.0.1")
_KERNELS: Final = ("/proc", "/dev", "/sys")


class SandboxEnclosures:
    """Runs programs in one sandbox, each on its own terms."""

    def __init__(self, sandbox: Sandbox, finder: Finder, folder: Path) -> None:
        self._sandbox = sandbox
        self._finder = finder
        self._folder = folder

    @property
    def driver(self) -> Driver:
        """Return the driver that isolates."""
        return self._sandbox.driver

    def sees(self, path: Path) -> bool:
        return reachable(path)

    def admit(self, folder: Path) -> None:
        identity().admit(folder)

    def own(self, folder: Path) -> None:
        user = identity()
        if user.uid is None:
            return
        user.own(folder)
        for place, folders, files in os.walk(folder):
            for name in (*folders, *files):
                user.own(Path(place, name))

    async def run(
        self, program: Program, listener: Listener, *, stdin: bytes = b"", feed: int | None = None
    ) -> ProgramRun:
        """Run a program to its end; with `feed` it lasts, and reads that descriptor.

        Raises SandboxUnavailableError, CommandMissingError, LooserError or OSError.
        """
        policy = self._policy(program.terms, lasts=feed is not None)
        await self._sandbox.require(policy)
        argv, env, mounts = self._placed(program)
        private = _private(program.private)

        def heard(connection: ConnectionAttempt) -> None:
            if connection.reason and program.refused is not None:
                program.refused(f"{connection.host}:{connection.port}", connection.reason)

        with self._home(program.name) as home:
            spec = Spec(
                id=new_id("run"),
                argv=argv,
                workspace=home,
                env={**_direct(private), **env},
                cwd=_start(program.cwd, mounts),
                stdin=stdin,
                feed=feed,
                mounts=mounts,
                limits=policy.limits,
                network=policy.network,
                private=private,
                listener=heard,
            )
            return await self.driver.exec(spec, listener)

    async def start(self, program: Program, protocol: asyncio.SubprocessProtocol) -> asyncio.SubprocessTransport:
        await self._sandbox.require(self._policy(program.terms, lasts=True))
        self._placed(program)
        return await LastingProgram.start(partial(self.run, program), protocol)

    async def require(self) -> None:
        await self._sandbox.require(self._sandbox.policy)

    def scratch(self) -> ScratchFolder:
        return ScratchFolder()

    async def execute(self, spec: Spec, listener: Listener) -> ProgramRun:
        await self.require()
        return await self.driver.exec(spec, listener)

    async def kill(self, run: str) -> None:
        await self.driver.kill(run)

    async def close(self) -> None:
        await self._sandbox.driver.close()

    def _policy(self, terms: SandboxTerms, *, lasts: bool) -> SandboxPolicy:
        for host in terms.network:
            try:
                read(host)
            except ValueError as error:
                raise LooserError("network", str(error)) from error
        policy = self._sandbox.policy
        limits = policy.limits
        if lasts:
            limits = msgspec.structs.replace(limits, **dict.fromkeys(_TIMES, _YEAR_MS), workspace_files=_HOME_FILES)
        return msgspec.structs.replace(policy, limits=tightened(limits, terms.limits), network=terms.network)

    def _placed(self, program: Program) -> tuple[tuple[str, ...], dict[str, str], tuple[FolderMount, ...]]:
        """Its words, its variables and what it sees."""
        path = program.env.get("PATH", _PATH)
        ours = program.env.get("PATH", os.environ.get("PATH", _PATH))
        locate = self._finder.locate(program.command[0], program.cwd, ours)
        reads = [*locate.reads, *program.reads, *map(Path, program.terms.roots)]
        every = [*(FolderMount(path, str(path)) for path in reads)]
        every += [FolderMount(Path(path), path, writable=True) for path in program.terms.writable]
        mounts = {mount.target: _checked(mount) for mount in (*every, *program.mounts)}
        env = {**program.env, "PATH": ":".join((*locate.search, path))}
        # What lies deeper is mounted later, and so on top.
        return (
            (*program.before, locate.program, *program.command[1:]),
            env,
            tuple(mounts[path] for path in sorted(mounts)),
        )

    @contextmanager
    def _home(self, name: str) -> Iterator[Path]:
        if not name:
            with scratch() as folder:
                yield folder
            return
        home = self._folder / "homes" / name
        identity().make(home)
        home.chmod(0o700)
        identity().own(home)
        yield home


def _checked(mount: FolderMount) -> FolderMount:
    path = mount.source
    for each in (path, Path(mount.target)):
        if each == Path("/") or any(each.is_relative_to(place) for place in _KERNELS):
            raise LooserError("roots", f"{each} cannot be a root")
    if not path.exists():
        raise SandboxUnavailableError(f"{path} does not exist", "Correct the roots of its sandbox.")
    if not reachable(path):
        raise SandboxUnavailableError(f"the sandbox's user cannot read {path}", CLOSED)
    return mount


def _start(cwd: Path, mounts: tuple[FolderMount, ...]) -> str:
    """The folder if the program can see it, or something below it."""
    targets = [Path(mount.target) for mount in mounts]
    inside = any(cwd.is_relative_to(target) or target.is_relative_to(cwd) for target in targets)
    return str(cwd) if inside and cwd != Path("/") else WORKSPACE


def _private(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the proxy lets through to any address, each with its port."""
    hosts = [host for host in map(read, entries) if host.name and not host.below]
    return tuple(f"{host.name}:{port}" for host in hosts for port in ([host.port] if host.port else PORTS))


def _direct(private: tuple[str, ...]) -> dict[str, str]:
    """Return the variable that leaves out the proxy for this machine, which the sandbox's own is not; {}: the usual."""
    own = [name for name in _LOOPBACK if not any(place.startswith(f"{name}:") for place in private)]
    return {"no_proxy": ",".join(own), "NO_PROXY": ",".join(own)} if len(own) < len(_LOOPBACK) else {}
