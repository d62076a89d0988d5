"""How the server is reached: connections as the journal wants them, made again where they are lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError, SettingsError
from remit.journal.batching import journal_closed
from remit.journal.postgres.errors import again, lost, translated

if TYPE_CHECKING:
    import asyncpg

    from remit.journal.postgres.address import Address

T = TypeVar("T")

PATIENCE_S: Final = 30.0
"""How long a server that went away is waited for before what was asked of it fails."""
_FIRST_S, _LONGEST_S = 0.02, 1.0
_CONNECT_S: Final = 10.0
_READERS: Final = 4
"""Connections that read and claim, made as they are needed."""
_SETTINGS: Final = {
    "application_name": "remit",
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
_CLOCK: Final = SystemClock()


async def connect(address: Address) -> asyncpg.Connection:
    """One connection, in the journal's schema. Raises what the driver raises."""
    driver = load_driver()
    connection: asyncpg.Connection = await driver.connect(
        address.dsn, timeout=_CONNECT_S, server_settings={**_SETTINGS, "search_path": address.schema}
    )
    try:
        await connection.execute(_DURABLE)
    except BaseException:  # whoever waited gave up: nobody else knows the connection yet
        connection.terminate()
        raise
    return connection


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

    async def once(self, statement: str, *arguments: object) -> Any:
        """Ask once; the first value. Raises what the driver raises: where that is `lost`, it may have been done."""
        connection = await self._connected()
        try:
            return await connection.fetchval(statement, *arguments)
        except BaseException as error:
            if not isinstance(error, Exception) or lost(error):
                self._drop()
            raise

    async def run(self, statement: str, *arguments: object, row: bool = False) -> Any:
        """Ask until there is an answer: its first value or row. For what may be done twice. Raises JournalError."""

        async def ask() -> Any:
            connection = await self._connected()
            return await (connection.fetchrow if row else connection.fetchval)(statement, *arguments)

        return await persist(ask, self.where, self._drop)

    async def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None and not self._connection.is_closed():
            await self._connection.close(timeout=_CONNECT_S)
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
        pool = self._pool
        if pool is None:
            raise journal_closed()

        async def once() -> T:
            async with pool.acquire() as connection:
                return await work(connection)

        return await persist(once, self._where)

    async def close(self) -> None:
        """Let what is under way end, then close them."""
        if self._pool is not None:
            await self._pool.close()


async def persist(ask: Callable[[], Awaitable[T]], where: str, drop: Callable[[], None] = lambda: None) -> T:
    """Try again while the server is away, with longer and longer pauses. Raises JournalError."""
    end, pause = _CLOCK.monotonic() + PATIENCE_S, _FIRST_S
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
            if _CLOCK.monotonic() > end:
                raise translated(error, where) from error
        await _CLOCK.sleep(pause)
        pause = min(2 * pause, _LONGEST_S)
