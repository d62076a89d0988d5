"""Keeps one server connected: started when first needed, again when it dies, and left alone when that does not help.

    asleep ──needed──> connecting ──> up ──lost──> resting ──> connecting …
                           └──failed──> resting, longer each time; parked after PARK_AFTER failures in a row

Who needs the connection waits for an attempt under way; while the supervisor rests for long, or is parked, they hear at
once why. A parked server is tried again when it is needed and PARK_S have passed; that they have is told.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.providers.mcp.connection import AgreedSession, Era, ListFailedError, connected
from remit.providers.mcp.session import translated
from remit.settings.expansion import KEYRING, expanded
from remit.tasks import first
from remit.tools.listings import cancelled

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.process.child import Launch
    from remit.providers.mcp.answers import ServerAnswers
    from remit.providers.mcp.oauth import ServerLogin
    from remit.providers.mcp.server_log import ServerLog
    from remit.providers.mcp.session import Heard
    from remit.randomness import RandomSource
    from remit.settings.mcp import McpServer

CONNECT_S: Final = 120.0
"""Seconds for an attempt: programs such as npx and uvx may have to fetch the server first."""
STABLE_S: Final = 1.0
"""Seconds a connection has to live for its loss not to count as a failure."""
PATIENT: Final = 2
"""Failures in a row up to which callers wait for the next attempt."""
PARK_AFTER: Final = 6
PARK_S: Final = 60.0
_FIRST_REST_S: Final = 0.2
_LONGEST_REST_S: Final = 30.0

_log: Final = logging.getLogger("remit.mcp")


class ConnectionSupervisor:
    """The one owner of a server's connections.

    `listener` is told what the server tells everyone; `arrived` of each new connection before anyone uses it.
    `retriable` is told that a server which was given up may be tried again.
    """

    def __init__(
        self,
        server: McpServer,
        answers: ServerAnswers,
        *,
        clock: Clock,
        chance: RandomSource,
        max_message_bytes: int,
        listener: Heard,
        login: ServerLogin | None,
        log: ServerLog,
        launch: Launch | None,
        arrived: Callable[[AgreedSession], None],
        retriable: Callable[[], None],
    ) -> None:
        self._server = server
        self._answers = answers
        self._clock = clock
        self._chance = chance
        self._max_message_bytes = max_message_bytes
        self._listener = listener
        self._login = login
        self._launch = launch
        self._server_log = log
        self._arrived = arrived
        self._retriable = retriable
        self._era = self._known_era
        self._patience: asyncio.Timeout | None = None
        """The time that an attempt under way has; None: there is none."""
        self._owner: asyncio.Task[None] | None = None
        self._attempt: asyncio.Future[AgreedSession] | None = None
        self._needed, self._again = asyncio.Event(), asyncio.Event()
        self._failures = 0
        self._reason = ""
        """Why there was no connection, as it was logged last."""
        self._resting = False
        self._up_since: float | None = None
        self._last: ProviderError | None = None
        self._parked_at: float | None = None
        self._closed = False
        self.reached = False
        """Whether there was ever a connection."""

    async def connection(self) -> AgreedSession:
        """The connection, waiting for it where that makes sense. Raises ProviderError."""
        if self._closed:
            raise ProviderError(f"the MCP server {self._server.name} is closed", cause=Code.ProviderClosed)
        if (connection := self.current) is not None:
            return connection
        attempt = self._attempt
        if (refusal := self.refusal()) is not None:
            raise ProviderError(str(refusal), cause=refusal.cause)
        if attempt is None or attempt.done():
            attempt = self._attempt = asyncio.get_running_loop().create_future()
        if self._owner is None:
            self._owner = asyncio.create_task(self._own(), name=f"mcp server {self._server.name}")
        self._needed.set()
        return await asyncio.shield(attempt)

    @property
    def current(self) -> AgreedSession | None:
        """Return the connection that is up; None if there is none now."""
        attempt = self._attempt
        up = attempt is not None and attempt.done() and not attempt.exception() and not attempt.result().why_lost
        return attempt.result() if attempt is not None and up else None

    async def restart(self, idle: Callable[[], Awaitable[object]], reason: str) -> None:
        """End the connection once `idle` returns; who needs one meanwhile waits for the next, which begins at once."""
        connection = self.current
        if connection is not None:
            self._attempt = asyncio.get_running_loop().create_future()
            try:
                await idle()
            finally:
                connection.lose(reason)
        self._failures, self._parked_at = 0, None
        self._again.set()

    def become(self, server: McpServer, login: ServerLogin | None, launch: Launch | None) -> None:
        """Connect by other settings from the next connection on; an attempt by the old ones is given up."""
        self._server, self._login, self._launch = server, login, launch
        self._era = self._known_era
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())

    @property
    def _known_era(self) -> Era | None:
        return None if self._server.era == "auto" else self._server.era

    def refusal(self) -> ProviderError | None:
        """Return what those who need the connection now hear at once; None if they may have it, or wait for it."""
        return self._last if self._resting and not self._due() else None

    async def close(self) -> None:
        """End the connection and keep none any more; may be called twice, and at once."""
        first, self._closed = not self._closed, True
        self._fail(ProviderError(f"the MCP server {self._server.name} is closed", cause=Code.ProviderClosed))
        if self._owner is not None:
            if first:
                self._owner.cancel()
            await asyncio.wait([self._owner])

    def _due(self) -> bool:
        """Return whether someone who needs the connection makes a rest end now, or may wait for its end."""
        if self._parked_at is None:
            return self._failures <= PATIENT
        return self._clock.monotonic() - self._parked_at >= PARK_S

    # --- the owner

    async def _own(self) -> None:
        while True:
            self._up_since, server = None, self._server
            try:
                await self._live(server)
            except (Exception, asyncio.CancelledError) as error:  # whatever goes wrong in there is this server's alone
                if isinstance(error, asyncio.CancelledError) and (self._closed or cancelled()):
                    raise  # leaving a scope of anyio's, a cancellation may lose its mark: being closed is proof enough
                if self._server is server:
                    self._report(_failure(error, server))
            finally:
                self._patience = None
            if self._server is not server:
                continue  # its settings changed: a failure by the old ones does not count
            if self._up_since is None:
                self._era = self._known_era  # it may be another program now
            self._failures = 0 if self._lived() >= STABLE_S else self._failures + 1
            await self._rest()

    def _lived(self) -> float:
        """Seconds that the last connection was up."""
        return 0.0 if self._up_since is None else self._clock.monotonic() - self._up_since

    async def _live(self, written: McpServer) -> None:
        """One connection from its beginning to its end."""
        name, login, launch = written.name, self._login, self._launch
        server = await asyncio.to_thread(expanded, written, os.environ)  # a keyring may ask a person
        self._server_log.secrets = [server.env[name] for name, text in written.env.items() if KEYRING in text]
        limit, era = self._max_message_bytes, self._era
        async with asyncio.timeout(CONNECT_S if self._server is written else 0) as patience:
            self._patience = patience
            async with connected(
                server, era, self._answers, self._listener, limit, self._clock, login, self._server_log, launch
            ) as connection:
                patience.reschedule(None)
                self._patience = None
                self._succeed(connection)
                reason = await connection.lost()
                if connection.process is not None:
                    reason = await connection.process.account(reason)
                self._last = ProviderError(f"the MCP server {name} was lost: {reason}", cause=Code.SpawnFailed)
                self._server_log.note(f"lost: {reason}")
                _log.warning("mcp.server.lost server=%s: %s", name, reason)

    def _succeed(self, connection: AgreedSession) -> None:
        self._era, self._last, self._parked_at = connection.era, None, None
        self._up_since = self._clock.monotonic()
        self.reached = True
        self._server_log.note("connected")
        self._arrived(connection)
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.get_running_loop().create_future()
        self._attempt.set_result(connection)

    def _fail(self, error: ProviderError) -> None:
        self._last = error
        if self._attempt is not None and not self._attempt.done():
            self._attempt.set_exception(error)
            self._attempt.exception()  # the waiter may be gone

    async def _rest(self) -> None:
        """Wait before the next attempt: not at all after a good connection, ever longer after failures."""
        self._resting = True
        self._again.clear()
        try:
            if self._failures >= PARK_AFTER:
                self._parked_at = self._clock.monotonic()
                _log.error("mcp.server.parked server=%s after %d failures", self._server.name, self._failures)
                await self._pause(PARK_S)
                self._needed.clear()
                self._retriable()
                await first(self._needed.wait(), self._again.wait())
            elif self._failures:
                rest = min(_LONGEST_REST_S, _FIRST_REST_S * 2 ** (self._failures - 1))
                await self._pause(rest * (0.5 + self._chance.number()))
        finally:
            self._resting = False

    async def _pause(self, seconds: float) -> None:
        """Wait so long, unless a person wants a new attempt."""
        await first(self._clock.sleep(seconds), self._again.wait())

    def _report(self, error: ProviderError) -> None:
        """Tell those who wait why there is no connection, and the log unless it was told the same before."""
        reason = _bare(str(error), self._server)
        kind = "list_tools" if isinstance(error, ListFailedError) else "spawn"
        level = logging.INFO if reason == self._reason else logging.ERROR
        self._server_log.note(f"failed: {reason}")
        _log.log(level, "mcp.%s.failed server=%s: %s", kind, self._server.name, reason)
        self._reason = reason
        self._fail(error)


def _bare(reason: str, server: McpServer) -> str:
    """A reason without the server's name before it, which stands there already."""
    for before in (f"{server.name}: ", f"the MCP server {server.name}: ", f"MCP server {server.name} "):
        reason = reason.removeprefix(before)
    return reason


def _failure(error: BaseException, server: McpServer) -> ProviderError:
    """Return why there is no connection."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        reason = f"no connection within {CONNECT_S:g} s"
    elif isinstance(error, UsageError):
        reason = _bare(". ".join(part for part in (error.message, error.remedy) if part), server)
    elif isinstance(error, OSError):
        what = "its folder " + server.cwd if server.cwd and not Path(server.cwd).is_dir() else server.where
        reason = f"cannot be started: {error.strerror or error}: {what}"
    elif isinstance(error, Exception):
        reason = _bare(str(translated(error, server.name)), server)
    else:
        reason = "the attempt was abandoned"
    message = f"the MCP server {server.name}: {reason}"
    if isinstance(error, ListFailedError):
        return ListFailedError(message, cause=error.cause)
    return ProviderError(message, cause=Code.SpawnFailed)
