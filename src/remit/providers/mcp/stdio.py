"""A server on stdio: messages as lines in and out of a child process, and how it is lost."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from remit.jsonrpc.dispatcher import Dispatcher
from remit.jsonrpc.message import RpcMessage
from remit.jsonrpc.stream import LineReader, LineTooLongError
from remit.process.child import DRAIN_S, STDIN, STDOUT, ChildProcess, Launch
from remit.process.family import ProcessFamily
from remit.providers.mcp.server_log import SECOND_S, ServerLog
from remit.redact import line, mask

SHOWN: Final = 600
"""Characters of its stderr that are shown behind a reason."""

_UNMET_S: Final = 0.1
"""The most grace of a server before the handshake: it has begun nothing that it could finish."""
_MUTE: Final = "it closed its stdout"
_DEAF: Final = "it takes no more requests"


class Stdio(ChildProcess):
    """The wire to a server that is a child process."""

    def __init__(self, max_message_bytes: int, grace_s: float, log: ServerLog) -> None:
        super().__init__(grace_s=min(grace_s, _UNMET_S))
        self._log = log
        self._whole_grace_s = grace_s
        self._family: ProcessFamily | None = None
        """None in the sandbox, which ends as a whole."""
        self._lines = LineReader(max_message_bytes)
        self._dying: asyncio.TimerHandle | None = None
        self._settling: asyncio.TimerHandle | None = None
        self.why_lost = ""
        """Why it will answer nothing that it is asked from now on."""
        self.dispatcher = Dispatcher(self)

    @classmethod
    async def run(
        cls,
        command: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        max_message_bytes: int,
        grace_s: float,
        log: ServerLog,
        launch: Launch | None = None,
    ) -> Stdio:
        """Start a server, by `launch` if it is given. Raises OSError if the system cannot, and what `launch` raises."""
        server = cls(max_message_bytes, grace_s, log)
        if launch is None:
            server._family = ProcessFamily()
            env = {**env, **server._family.env}
        await server.start(command, cwd=cwd, env=env, launch=launch)
        server._secrets += log.secrets
        return server

    def met(self) -> None:
        """Give it its whole grace from now on: the handshake is over."""
        self._grace_s = self._whole_grace_s

    async def account(self, reason: str) -> str:
        """The `reason` for which it is of no use, with how it ended and the last it wrote to stderr, as far as known.

        If it is gone, what is still in its pipes is read first.
        """
        if self.dispatcher.why_closed:
            await self.read_out()
            if self.exit_status is not None:
                reason = self.why_ended if reason in {_MUTE, _DEAF} else reason
        if self.dispatcher.invalid_messages:
            reason += f"; {self.dispatcher.invalid_messages} lines of its stdout were not messages"
        stderr = line(mask(self.shown(self.err))[-SHOWN:], SHOWN)
        return f"{reason}; it last wrote: {stderr}" if stderr else reason

    async def close(self) -> None:
        if self._transport is not None:
            self._lost("the connection was closed")
        try:
            await super().close()
        finally:
            if self._family is not None:
                await asyncio.to_thread(self._family.end)

    def send(self, message: RpcMessage) -> None:
        """Write a message to its stdin."""
        self.write(message.body + b"\n")

    # --- what the child process does

    def heard(self, data: bytes) -> None:
        try:
            for each in self._lines.feed(data):
                self.dispatcher.received(each)
        except LineTooLongError as error:
            self._lost(str(error))
            self.send_signal(signal.SIGKILL)

    def erred(self, data: bytes) -> None:
        super().erred(data)
        self._log.feed(data, self._secrets)
        if self._log.flooded and self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(SECOND_S, self._settle)

    def shut(self, fd: int) -> None:
        if fd == STDOUT:
            self._lost_soon(_MUTE)
        elif fd == STDIN:
            self._lost_soon(_DEAF)

    def exited(self) -> None:
        self._lost_soon(self.why_ended)

    def gone(self) -> None:
        self._lost(self.why_ended)
        for timer in (self._dying, self._settling):
            if timer is not None:
                timer.cancel()
        self._log.settle()

    def _settle(self) -> None:
        self._settling = None
        self._log.settle()

    def _lost_soon(self, reason: str) -> None:
        """It is of no use any more, but what it has written already is still read, and its exit waited for."""
        if not self.why_lost:
            self.why_lost = reason
            self._dying = asyncio.get_running_loop().call_later(DRAIN_S, self._lost, reason)

    def _lost(self, reason: str) -> None:
        self._writable.set()
        self.why_lost = self.why_lost or reason
        self.dispatcher.close(reason)
