"""`remit guard serve`: a socket of the user's own that hooks ask, started by the first of them.

A request is the line `AGENT.MOMENT`, a length in eight bytes, the lowest first, and so many bytes of the message; the
answer is the status that the client ends with, `0` or `2`, and one line that it prints. Nothing else is an answer.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from remit.errors import RemitError, UsageError
from remit.parts.hooks.hook import AGENTS, AgentName, answer, read_hook
from remit.settings.places import data_folder
from remit.tasks import Tasks

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.hooks.guard import HookGuard
    from remit.settings import Settings

_log: Final = logging.getLogger("remit.hooks")
DEADLINE_S: Final = 580
"""Seconds after which a client gives up, and the call is not made; agents wait 20 s longer."""
_MAX_PATH: Final = 100
"""Bytes of a socket's path; systems take 104 to 108."""
_MAX_TAG: Final = 1_024
_MAX_MESSAGE: Final = 64 * 1024 * 1024
_START_S: Final = 20.0
_POLL_S: Final = 0.02
_CREDENTIALS: Final = struct.Struct("3i")


class GuardFolder:
    """The folder of one guard: of the settings that it stands for."""

    def __init__(self, settings: Settings, env: Mapping[str, str]) -> None:
        whose = os.fsencode(settings.file or settings.folder)
        self.path = data_folder(env) / "guard" / sha256(whose).hexdigest()[:12]
        self.socket, self.client = self.path / "socket", self.path / "client"
        self.log, self.lock = self.path / "log", self.path / "lock"
        self.connections = self.path / "connections"

    def make(self) -> None:
        """Make it, for its user alone. Raises OSError, and UsageError if a socket's path would be too long."""
        if len(os.fsencode(self.socket)) > _MAX_PATH:
            raise UsageError(
                f"{self.socket} is too long for a socket", remedy="Set XDG_DATA_HOME to a folder with a shorter path."
            )
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def agents(self) -> tuple[AgentName, ...]:
        """Return the agents that are connected, as their records say."""
        records = self.connections.glob("*.json") if self.connections.is_dir() else ()
        named = {msgspec.json.decode(record.read_bytes(), type=_Record).client for record in records}
        return tuple(agent for agent in AGENTS if agent in named)


class _Record(msgspec.Struct):
    """A record of a connection (remit.mcp_config.connections), as far as it is read here."""

    client: str


class GuardServer:
    """Takes the connections of clients."""

    def __init__(self, guard: HookGuard, clock: Clock, *, idle_s: float) -> None:
        self._guard = guard
        self._clock = clock
        self._idle_s = idle_s
        self._tasks = Tasks()
        self._open = 0
        self._last = clock.monotonic()

    async def serve(self, folder: GuardFolder) -> bool:
        """Serve until no hook has come for long; False: another guard serves there. Raises OSError."""
        folder.make()
        with folder.lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            await self._guard.settle_left()
            folder.socket.unlink(missing_ok=True)
            mask = os.umask(0o177)
            try:
                server = await asyncio.get_running_loop().create_unix_server(self._conversation, folder.socket)
            finally:
                os.umask(mask)
            async with server:
                while not self._idle:
                    await self._clock.sleep(self._rest_s)
            folder.socket.unlink(missing_ok=True)
        return True

    @property
    def _rest_s(self) -> float:
        return max(1.0, self._idle_s - (self._clock.monotonic() - self._last))

    @property
    def _idle(self) -> bool:
        late = self._clock.monotonic() - self._last >= self._idle_s
        return late and not self._open and not self._guard.busy

    def _conversation(self) -> HookConversation:
        self._open += 1
        return HookConversation(self._guard, self._tasks, self._ended)

    def _ended(self) -> None:
        self._open -= 1
        self._last = self._clock.monotonic()


class HookConversation(asyncio.Protocol):
    """A client's request and the answer: a task a hook, and none that waits for pieces or for the client's end."""

    def __init__(self, guard: HookGuard, tasks: Tasks, ended: Callable[[], None]) -> None:
        self._guard = guard
        self._tasks = tasks
        self._ended = ended
        self._came = bytearray()
        self._whole = False
        """Whether the request has come; what comes after it is not read."""
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """The client no longer waits: it ends with 2."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not _is_ours(transport.get_extra_info("socket")):
            transport.close()

    def data_received(self, data: bytes) -> None:
        if self._whole:
            return
        self._came += data
        try:
            request = _request(self._came)
        except (RemitError, ValueError) as error:
            self._whole = True
            self._say(_refused(error))
            return
        if request is not None:
            self._whole = True
            self._tasks.begin(self._answer(*request))

    def eof_received(self) -> bool:
        self._leave()
        return self._whole

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the port's
        self._leave()
        self._ended()

    def _leave(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)

    async def _answer(self, tag: str, message: bytes) -> None:
        line = b""
        try:
            hook = read_hook(tag, message)
            line = answer(hook, await self._guard.answer(hook, self._gone))
        except Exception as error:  # noqa: BLE001 - whatever it is, the call must not be made
            line = _refused(error)
        finally:
            self._say(line)

    def _say(self, line: bytes) -> None:
        self._transport.write(line)
        self._transport.close()


def _request(came: bytearray) -> tuple[str, bytes] | None:
    """Return tag and message of a request; None: it is not whole. Raises UsageError and ValueError."""
    tag, ended, _ = bytes(came[:_MAX_TAG]).partition(b"\n")
    start = len(tag) + 1 + 8
    end = start + int.from_bytes(came[start - 8 : start], "little")
    if not ended and len(tag) == _MAX_TAG:
        raise UsageError("the hook's tag is too long", remedy="Unset CLAUDE_CODE_ENTRYPOINT.")
    if len(came) >= start and end - start > _MAX_MESSAGE:
        raise UsageError("the hook's message is too long", remedy="Have the agent make smaller calls.")
    return (tag.decode(), bytes(came[start:end])) if start <= len(came) >= end else None


def _refused(error: Exception) -> bytes:
    """Return the answer where there is no verdict: the call is not made."""
    reason = error.message if isinstance(error, RemitError) else str(error)
    _log.error("a hook could not be answered: %s", reason, exc_info=None if isinstance(error, RemitError) else error)
    return b"2" + f"remit guard: {reason}".replace("\n", " ").encode() + b"\n"


def _is_ours(peer: Any) -> bool:
    """Return whether a client is a process of our own user."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:  # the socket's mode says so alone
        return True
    _, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return bool(uid == os.geteuid())


async def start(folder: GuardFolder, command: Sequence[str], clock: Clock) -> None:
    """Start the guard with a command unless one answers, and wait until it does. Raises OSError."""
    until, guard = clock.monotonic() + _START_S, None
    while True:
        try:
            _, writer = await asyncio.open_unix_connection(folder.socket)
        except OSError:
            if clock.monotonic() > until:
                raise
        else:
            writer.close()
            return
        guard = guard or _started(folder, command)
        if guard.poll():
            raise OSError(f"the guard does not start; {folder.log} says why")
        await clock.sleep(_POLL_S)


def _started(folder: GuardFolder, command: Sequence[str]) -> subprocess.Popen[bytes]:
    folder.make()
    with folder.log.open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - Remit itself
            [*command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=folder.path
        )


def program() -> list[str]:
    """Return the command of this Remit, with its whole path."""
    beside = Path(sys.executable).with_name("remit")
    return [str(beside)] if beside.is_file() else [sys.executable, "-P", "-m", "remit"]
