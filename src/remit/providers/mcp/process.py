"""A server's process: lines in and out, the tail of its stderr, and nothing left of it in the end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.lines import Lines, LineTooLongError
from remit.jsonrpc.message import Message
from remit.redact import MASK, line, mask

STDERR_TAIL: Final = 8 * 1024
"""Bytes of stderr that are kept to be shown."""
SHOWN: Final = 600
"""Characters of it that are shown behind a reason."""
GRACE_S: Final = 0.25
"""Seconds for each of: ending by itself once stdin is closed, and after SIGTERM."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_MUTE: Final = "it closed its stdout"
_DEAF: Final = "it takes no more requests"
_INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""What a server is given of our environment: what programs need to run at all, and no secrets."""


def environment(ours: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """What a server sees."""
    return {**{name: ours[name] for name in _INHERITED if name in ours}, **added}


def secrets_of(env: Mapping[str, str]) -> list[str]:
    """The values whose names say that nobody is to see them."""
    return [value for name, value in env.items() if value and MASK in mask(f"{name}={value}")]


class Process(asyncio.SubprocessProtocol):
    """One child in a session, and so a process group, of its own."""

    def __init__(self, max_message_bytes: int, secrets: Sequence[str] = ()) -> None:
        """Refuse messages of more than `max_message_bytes`; `secrets` are never shown."""
        self._secrets = secrets
        self._lines = Lines(max_message_bytes)
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._gone = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._dying: asyncio.TimerHandle | None = None
        self.why_lost = ""
        """Why it will answer nothing that it is asked from now on."""
        self.dispatcher = Dispatcher(self)

    @classmethod
    async def start(
        cls, command: Sequence[str], *, cwd: str, env: Mapping[str, str], max_message_bytes: int
    ) -> Process:
        """Start it. Raises OSError where the system cannot."""
        loop = asyncio.get_running_loop()
        process = cls(max_message_bytes, secrets_of(env))
        await loop.subprocess_exec(
            lambda: process, *command, cwd=cwd or None, env=dict(env), start_new_session=True, bufsize=0
        )
        return process

    @property
    def stderr(self) -> str:
        """The last it wrote to stderr, without the secrets it was given."""
        text = b"".join(self._stderr)[-STDERR_TAIL:].decode(errors="replace").strip()
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    @property
    def exit_status(self) -> int | None:
        """Its return code, negative for the signal that ended it; None while it runs."""
        return self._transport.get_returncode() if self._transport is not None else None

    async def account(self, why: str) -> str:
        """The reason `why` it is of no use, with how it ended and the last it wrote to stderr, as far as that is known.

        Of one that is gone, all is waited for that is still in the pipes.
        """
        if self.dispatcher.why_closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await self._gone.wait()
            if self.exit_status is not None:
                why = _ended(self.exit_status) if why in {_MUTE, _DEAF} else why
        if self.dispatcher.nonsense:
            why += f"; {self.dispatcher.nonsense} lines of its stdout were no messages"
        said = line(self.stderr[-SHOWN:], SHOWN)
        return f"{why}; it last wrote: {said}" if said else why

    async def close(self) -> None:
        """End it and everything it started, within two grace periods; harmless once it is gone."""
        transport = self._transport
        if transport is None:
            return
        self._lost("the connection was closed")
        if self._stdin is not None:
            self._stdin.close()
        try:
            if not await self._ended():
                self._kill(signal.SIGTERM)
                await self._ended()
        finally:
            self._kill(signal.SIGKILL)  # also after a clean exit: what it started may have stayed
            transport.close()
        await self._gone.wait()

    # --- the dispatcher's wire

    def send(self, message: Message) -> None:
        """Write a line to its stdin."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(message.body + b"\n")

    async def drained(self) -> None:
        """Wait while it does not read."""
        await self._writable.wait()

    # --- what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It wrote something."""
        if fd == _STDERR:
            self._keep(data)
            return
        try:
            for each in self._lines.feed(data):
                self.dispatcher.received(each)
        except LineTooLongError as error:
            self._lost(str(error))
            self._kill(signal.SIGKILL)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """A pipe is closed; without stdout it has nothing to say any more, without stdin nothing to do."""
        if fd == _STDOUT:
            self._lost_soon(_MUTE)
        elif fd == _STDIN:
            self._writable.set()
            self._lost_soon(_DEAF)

    def process_exited(self) -> None:
        """It has ended, and with it what it started; what it said before that is still read."""
        self._kill(signal.SIGKILL)
        self._lost_soon(_ended(self.exit_status))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """It has ended, and all its pipes are closed."""
        self._lost(_ended(self.exit_status))
        self._gone.set()
        if self._dying is not None:
            self._dying.cancel()

    def pause_writing(self) -> None:
        """Its stdin is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It reads again."""
        self._writable.set()

    # --- common

    def _lost_soon(self, why: str) -> None:
        """It is of no use any more, but what it has written already is still read, and how it ended waited for."""
        if not self.why_lost:
            self.why_lost = why
            self._dying = asyncio.get_running_loop().call_later(GRACE_S, self._lost, why)

    def _lost(self, why: str) -> None:
        self._writable.set()
        self.why_lost = self.why_lost or why
        self.dispatcher.close(why)

    def _keep(self, data: bytes) -> None:
        self._stderr.append(data[-STDERR_TAIL:])
        self._stderr_size += len(self._stderr[-1])
        while self._stderr_size - len(self._stderr[0]) >= STDERR_TAIL:
            self._stderr_size -= len(self._stderr.popleft())

    async def _ended(self) -> bool:
        """Whether it ends within the grace."""
        if self._transport is None or self.exit_status is not None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._gone.wait()
        return self.exit_status is not None

    def _kill(self, how: signal.Signals) -> None:
        if self._transport is not None:
            with suppress(ProcessLookupError, PermissionError):  # all of the group is gone
                os.killpg(self._transport.get_pid(), how)


def _ended(status: int | None) -> str:
    if status is None:
        return "its process has ended"
    if status < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with exit code {status}"
