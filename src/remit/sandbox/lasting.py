"""A program that lasts in the sandbox, as asyncio knows processes: a transport, driven for a subprocess protocol."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any, Final, Literal, Protocol

from remit.process.enclosure import Listener
from remit.sandbox.execution import Execution


class RunFed(Protocol):
    """Runs a program to its end."""

    def __call__(self, listener: Listener, *, feed: int) -> Coroutine[Any, Any, Execution]:
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
        self._task: asyncio.Task[Execution] | None = None
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
        made = cls(protocol, stdin)
        protocol.connection_made(made)
        made._run(run, reading)
        return made

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
        def over(task: asyncio.Task[Execution]) -> None:
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


def _code_of(execution: Execution) -> int:
    if execution.signal:
        return -signal.Signals[execution.signal].value
    return execution.exit_code or 0
