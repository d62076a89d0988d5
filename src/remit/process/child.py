"""One child process: its pipes, the tails of its output, how it ended, and nothing left of it in the end.

start   in a session and so a process group of its own, with the environment that it is given and no shell;
        on Linux it is killed when we are
output  read as it comes; `out` and `err` keep its tails, a subclass may take stdout for itself
end     at `close`: stdin is closed; after the grace the group gets SIGTERM, after another SIGKILL. The group is
        killed after a clean exit too: what the child started may still run

Ending children when we are killed: Linux sends a child a signal at the death of its parent, if the child asks it to.

The child asks through util-linux's `setpriv`, which becomes the program itself. Asking from a `preexec_fn` would run
Python between fork and exec, which may deadlock in a process with threads. Elsewhere, and without `setpriv`, a child
only sees that its stdin is closed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, cast

from remit.process.environment import secrets_of, without

TAIL_BYTES: Final = 8 * 1024
"""Bytes that are kept of each output, unless a child says otherwise."""
GRACE_S: Final = 2.0
"""Seconds for each of: ending by itself once stdin is closed, and after SIGTERM."""
DRAIN_S: Final = 0.25
"""Seconds for what is still in the pipes of a child that has ended."""
STDIN, STDOUT, STDERR = 0, 1, 2


Launch = Callable[
    [asyncio.SubprocessProtocol, Sequence[str], str, Mapping[str, str]], Awaitable[asyncio.SubprocessTransport]
]
"""Starts a command in a folder with an environment, for a protocol; signals go through the transport that it gives."""


class ChildProcess(asyncio.SubprocessProtocol):
    """One child. A subclass may override `heard`, `erred`, `shut`, `exited` and `gone`."""

    def __init__(self, *, tail_bytes: int = TAIL_BYTES, grace_s: float = GRACE_S) -> None:
        self.out = Tail(tail_bytes)
        self.err = Tail(tail_bytes)
        self._grace_s = grace_s
        self._secrets: list[str] = []
        self._writable = asyncio.Event()
        self._writable.set()
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._signal: Callable[[signal.Signals], object] = self._signal_group

    async def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str = "",
        pass_fds: Sequence[int] = (),
        launch: Launch | None = None,
    ) -> None:
        """Start it, once, with this environment and no other. Raises OSError if the system cannot.

        Values of `env` whose names say that they are secret never appear in `shown`. `pass_fds` stay open in it.
        `launch` starts it in another way, such as in the sandbox; it raises what it likes.
        """
        self._secrets = secrets_of(env)
        if launch is not None:
            self._signal = (await launch(self, command, cwd, env)).send_signal
            return
        words = bound(command, cwd=cwd, env=env)
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            *words,
            cwd=cwd or None,
            env=dict(env),
            start_new_session=True,
            pass_fds=tuple(pass_fds),
            bufsize=0,
        )

    @property
    def exit_status(self) -> int | None:
        """Its return code, negative for the signal that ended it; None while it runs."""
        return self._transport.get_returncode() if self._transport is not None else None

    @property
    def why_ended(self) -> str:
        """Return how it ended, in words for people."""
        return reason_of(self.exit_status)

    def shown(self, output: Tail) -> str:
        """The tail of an output as text, without the secrets that it was given."""
        return without(self._secrets, output.data.decode(errors="replace").strip())

    def write(self, data: bytes) -> None:
        """Queue data for its stdin; dropped once that is closed. `drained` bounds what is queued."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    def close_stdin(self) -> None:
        """Let it see the end of its input once what was written is read."""
        if self._stdin is not None:
            self._stdin.close()

    async def drained(self) -> None:
        """Wait while it does not read."""
        await self._writable.wait()

    async def ended(self) -> int:
        """Wait until it has ended and its output is read; its return code, negative for a signal.

        Output that another process keeps open is given up after `DRAIN_S`.
        """
        await self._exited.wait()
        await self.read_out()
        return cast("int", self.exit_status)

    async def read_out(self) -> None:
        """Wait for what is still in the pipes of a child that has ended, for at most `DRAIN_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._gone.wait()

    async def close(self) -> None:
        """End it and all that it started, within three grace periods; harmless once it is gone, may be called twice."""
        transport = self._transport
        if transport is None:
            return
        self.close_stdin()
        try:
            for how in (signal.SIGTERM, signal.SIGKILL):
                if await self._ends():
                    break
                self.send_signal(how)
            await self._ends()  # closing the transport sooner would take the exit status away from asyncio
        finally:
            self.send_signal(signal.SIGKILL)
            transport.close()
        await self._gone.wait()

    def send_signal(self, how: signal.Signals) -> None:
        """Signal its process group, if any of it is left."""
        if self._transport is not None:
            self._signal(how)

    # --- what a subclass may hear of

    def heard(self, data: bytes) -> None:
        """It wrote to stdout."""
        self.out.feed(data)

    def erred(self, data: bytes) -> None:
        """It wrote to stderr."""
        self.err.feed(data)

    def shut(self, fd: int) -> None:
        """It closed its end of a pipe: it takes no more input, or writes no more."""

    def exited(self) -> None:
        """It has ended; what is still in the pipes is read yet."""

    def gone(self) -> None:
        """It has ended, and all its pipes are closed."""

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(STDIN))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It wrote something."""
        if fd == STDERR:
            self.erred(data)
        else:
            self.heard(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """A pipe is closed."""
        if fd == STDIN:
            self._writable.set()
        self.shut(fd)

    def process_exited(self) -> None:
        """It has ended, and what it started ends with it."""
        self.send_signal(signal.SIGKILL)
        self._exited.set()
        self.exited()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """It has ended, and all its pipes are closed."""
        self._writable.set()
        self.gone()
        self._gone.set()

    def pause_writing(self) -> None:
        """Its stdin is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    def _signal_group(self, how: signal.Signals) -> None:
        if self._transport is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), how)

    async def _ends(self) -> bool:
        """Return whether it ends within the grace."""
        if self.exit_status is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._grace_s):
                    await self._exited.wait()
        return self.exit_status is not None


def reason_of(status: int | None) -> str:
    """Return how a process ended: `status` is its return code, negative for a signal, None if it is not known."""
    if status is None:
        return "its process has ended"
    if status < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with exit code {status}"


class Tail:
    """Keeps at most `cap` bytes: the last ones."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self.size = 0
        """Bytes that came in all."""

    def feed(self, data: bytes) -> None:
        """Take what came next. The cost depends on `data` alone."""
        self.size += len(data)
        piece = data[-self._cap :]
        if not piece:
            return
        self._pieces.append(piece)
        self._held += len(piece)
        while self._held - len(self._pieces[0]) >= self._cap:
            self._held -= len(self._pieces.popleft())

    @property
    def data(self) -> bytes:
        """The last `cap` bytes."""
        return b"".join(self._pieces)[-self._cap :]

    @property
    def truncated(self) -> bool:
        """Return whether earlier bytes were dropped."""
        return self.size > self._cap


_PROBE_S: Final = 5.0
_ASK: Final = ("--pdeathsig", "KILL", "--")


def bound(command: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> list[str]:
    """The command that has the kernel kill `command` when the thread that starts it ends.

    It is `command` itself on a system that cannot. Raises OSError if the program cannot be started, because behind
    `setpriv` only its exit status would say so.
    """
    asking = _asking()
    return [*asking, _program(command[0], cwd, env), *command[1:]] if asking else list(command)


@cache
def _asking() -> tuple[str, ...]:
    """The words before a command; none if this system has none. Runs `setpriv` once, to see whether it knows how."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None:
        return ()
    words = (setpriv, *_ASK)
    try:
        probe = subprocess.run([*words, setpriv, "--version"], capture_output=True, check=False, timeout=_PROBE_S)  # noqa: S603 - a program found on our own PATH
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return words if probe.returncode == 0 else ()


def _program(name: str, cwd: str, env: Mapping[str, str]) -> str:
    """The path of a program, found as `exec` finds it. Raises OSError."""
    if os.sep in name:
        path = Path(cwd or ".") / name
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return name
    program = shutil.which(name, path=env.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return program
