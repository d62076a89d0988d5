"""The way to the server: connections as the journal wants them, made again where they are lost."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError, SettingsError
from remit.journal.batching import journal_closed
from remit.journal.postgres.errors import again, lost, translated, wrong_url

if TYPE_CHECKING:
    import asyncpg

    from remit.journal.postgres.address import Address

T = TypeVar("T")

PATIENCE_S: Final = 30.0
"""The time that a server that went away is waited for before what was asked of it fails."""
_FIRST_S, _LONGEST_S = 0.02, 1.0
_CONNECT_S: Final = 10.0
_CLOSE_S: Final = 10.0
ANSWER_S: Final = 20.0
"""The time that the answer to something brief is waited for before its connection counts as lost."""
LONG_ANSWER_S: Final = 120.0
"""The same for what may bring a page of large values over a slow line."""
_READERS: Final = 4
"""Connections that read and claim, made as they are needed."""
_SETTINGS: Final = {
    # Every statement of ours has an index to use. Left to choose, the planner reads the whole of a table that was
    # small when it last looked.
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "idle_in_transaction_session_timeout": "60000",
}
# What counts as flushed is the server's setting, unless that is nothing at all. Set for the session, so that a server
# that is told something else later does not change what was promised.
_DURABLE: Final = """
SELECT set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)
"""
_OPEN: Final = "SELECT {lock}(hashtext('remit open {schema}'))"
"""A lock that each of our connections shares while it lives: a connection that gets it exclusively is alone."""
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}
"""A machine that went away without a word is noticed within about 25 seconds, by those systems that know these."""
_CLOCK: Final = SystemClock()


async def connect(address: Address) -> asyncpg.Connection:
    """One connection, in the journal's schema.

    Raises what the driver raises; JournalError where the URL says what cannot be.
    """
    driver = load_driver()
    try:
        connection: asyncpg.Connection = await driver.connect(
            address.dsn,
            timeout=_CONNECT_S,
            command_timeout=LONG_ANSWER_S,
            server_settings={**_SETTINGS, "application_name": address.name, "search_path": address.schema},
        )
    except Exception as error:
        if (wrong := wrong_url(error, str(address))) is not None:
            raise wrong from error
        raise
    try:
        _keep_alive(connection._transport.get_extra_info("socket"))  # noqa: SLF001 - the driver has no word for it
        await connection.execute(_DURABLE)
        await connection.execute(_OPEN.format(lock="pg_advisory_lock_shared", schema=address.schema))
    except BaseException:  # the waiter gave up: no one else knows the connection yet
        connection.terminate()
        raise
    return connection


async def in_use(address: Address) -> bool:
    """Return whether a process has the journal open. Raises JournalError."""
    driver = load_driver()

    async def ask() -> bool:
        connection: asyncpg.Connection = await driver.connect(address.dsn, timeout=_CONNECT_S)
        try:
            return not await connection.fetchval(_OPEN.format(lock="pg_try_advisory_lock", schema=address.schema))
        finally:
            await connection.close(timeout=_CLOSE_S)

    return await persist(ask, str(address))


def _keep_alive(line: socket.socket) -> None:
    """Have the system look now and then whether the other end is there, also while nothing is said."""
    if line.family == getattr(socket, "AF_UNIX", None):
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def load_driver() -> Any:
    """The driver's module. Raises SettingsError where it is not installed."""
    try:
        import asyncpg  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        msg = "a journal in PostgreSQL needs the package asyncpg"
        raise SettingsError(msg, code=Code.SETTINGS_INVALID, remedy="pip install 'remit[postgres]'") from error
    return asyncpg


class Link:
    """One connection for one user of it, made when it is first needed and again when it is lost."""

    def __init__(self, address: Address) -> None:
        self.where = str(address)
        self._address = address
        self._connection: asyncpg.Connection | None = None

    async def once(self, statement: str, *arguments: object, patience_s: float) -> Any:
        """Ask once; the first value. Raises what the driver raises: where that is `lost`, it may have been done."""
        connection = await self._connected()
        try:
            return await connection.fetchval(statement, *arguments, timeout=patience_s)
        except BaseException as error:
            if not isinstance(error, Exception) or lost(error):
                self._drop()
            raise

    async def run(self, statement: str, *arguments: object) -> Any:
        """Ask until there is an answer; its first value. For what is brief and may be done twice.

        Raises JournalError.
        """

        async def ask() -> Any:
            return await (await self._connected()).fetchval(statement, *arguments, timeout=ANSWER_S)

        return await persist(ask, self.where, self._drop)

    async def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None and not self._connection.is_closed():
            with contextlib.suppress(OSError):
                await self._connection.close(timeout=_CLOSE_S)
        self._connection = None

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._address)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


class Readers:
    """A few connections shared by everything that reads and claims."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._where = str(address)
        self._pool: asyncpg.Pool | None = None

    async def open(self) -> None:
        """Make the pool; it connects as it is used."""

        async def as_it_is(_connection: asyncpg.Connection) -> None:
            """Nothing of a connection is ever changed, so nothing has to be set back."""

        self._pool = load_driver().create_pool(
            min_size=0,
            max_size=_READERS,
            connect=lambda *_args, **_more: connect(self._address),
            reset=as_it_is,
        )
        await self._pool

    async def run(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Do something that may be done twice on one of them. Raises JournalError."""

        async def once() -> T:
            if self._pool is None:
                raise journal_closed()
            async with self._pool.acquire() as connection:
                try:
                    return await work(connection)
                except TimeoutError:
                    connection.terminate()  # It would not answer to being returned either.
                    raise

        return await persist(once, self._where)

    async def close(self) -> None:
        """Let what is under way end, then close them."""
        pool, self._pool = self._pool, None
        if pool is not None:
            with contextlib.suppress(OSError):
                await asyncio.wait_for(pool.close(), _CLOSE_S)


async def persist(ask: Callable[[], Awaitable[T]], where: str, drop: Callable[[], None] = lambda: None) -> T:
    """Try again while the server is away, with longer and longer pauses. Raises JournalError."""
    end, pause = inf, _FIRST_S
    while True:
        try:
            return await ask()
        except JournalError:
            raise
        except Exception as error:
            if again(error):
                continue
            if not lost(error):
                raise translated(error, where) from error
            drop()
            # Counted from the first failure: an answer that did not come may have been waited for before.
            end = min(end, _CLOCK.monotonic() + PATIENCE_S)
            if _CLOCK.monotonic() > end:
                raise translated(error, where) from error
        await _CLOCK.sleep(pause)
        pause = min(2 * pause, _LONGEST_S)
