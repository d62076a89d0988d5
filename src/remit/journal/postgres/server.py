"""The way to the server: connections as the journal wants them, made again where they are lost.

Where a journal is: a PostgreSQL URL, and the schema in it.

PostgreSQL's errors as ours: one table by SQLSTATE (style: foreign errors, one table per adapter).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import JournalError, SettingsError
from remit.journal.commit import journal_closed
from remit.journal.postgres.functions import ENDED, HELD
from remit.journal.retirement import busy, refusal
from remit.regex import regex

if TYPE_CHECKING:
    import asyncpg


_SERVER: Final = "Check that the server runs and can be reached, then resume; nothing recorded was lost."
_LOGIN: Final = "Check user, password and database in the journal's URL."
_FILES: Final = (
    "There is no such socket or file: check host, sslrootcert, sslcert and sslkey in the journal's URL, "
    "and that the server runs."
)
_TLS: Final = (
    "Check the server's certificate, and sslmode and sslrootcert in the journal's URL; nothing recorded was lost."
)
_URL: Final = "Correct the part of the journal's URL that is named, or leave it out."
_ALLOW: Final = "Give the journal's user write access, or use another server."
_GRANT: Final = (
    "Grant the journal's user CREATE on the database to create the schema. If the schema exists, grant USAGE on it "
    "and its sequences, and SELECT, INSERT, UPDATE and DELETE on its tables."
)
_FREE: Final = "Free space on the server's disk, then resume; nothing recorded was lost."
_RESTORE: Final = "Restore the journal from a backup; `remit doctor` shows what can be read."
_HEAR: Final = (
    "The NOTIFY queue is full: end the listening session that is idle in a transaction, check with SELECT "
    "pg_notification_queue_usage(), then resume. Nothing recorded was lost."
)
_VALUE: Final = "Nothing was recorded. Fix the value that the message names."
_UNKNOWN: Final = "It is unknown whether the last commit was recorded; `remit show` tells once the server answers."

_TABLE: Final[tuple[tuple[str, Code, str], ...]] = (
    ("25006", Code.JOURNAL_READ_ONLY, _ALLOW),  # a read-only transaction: a standby, or set so
    ("42501", Code.JOURNAL_READ_ONLY, _GRANT),
    ("28", Code.JOURNAL_IO, _LOGIN),
    ("3D", Code.JOURNAL_IO, _LOGIN),
    ("53100", Code.JOURNAL_FULL, _FREE),
    ("55P03", Code.JOURNAL_LOCKED, "End the program that holds the lock, then try again."),
    ("22", Code.RECORD_INVALID, _VALUE),
    ("23", Code.RECORD_INVALID, _VALUE),
    ("54", Code.RECORD_INVALID, _VALUE),
    ("XX001", Code.JOURNAL_CORRUPT, _RESTORE),
    ("XX002", Code.JOURNAL_CORRUPT, _RESTORE),
)
"""By SQLSTATE or its beginning."""
_UNFIT: Final = ("42704", "22023", "55P02")
"""A setting of the session is unknown to the server, has a value that it cannot have, or cannot be set."""
_LOST: Final = ("08", "57P", "53300")
"""The server is not there, is going down or coming up, or takes no more connections: it is asked again."""


def lost(error: BaseException) -> bool:
    """Return whether the connection is gone, rather than what was sent being wrong."""
    return isinstance(error, OSError | EOFError | TimeoutError) or state_of(error).startswith(_LOST) or _closed(error)


def again(error: BaseException) -> bool:
    """Return whether the server undid a transaction only because of others at the same time."""
    return state_of(error) in {"40P01", "40001"}


def wrong_url(error: BaseException, where: str) -> JournalError | None:
    """Return what to raise where no connection was made because of what the URL says; None where it is not to blame."""
    # Nothing is encoded yet: a ValueError comes from reading the URL, or is an OSError of TLS.
    unread = isinstance(error, ValueError) and not isinstance(error, OSError)
    if not unread and state_of(error) not in _UNFIT:
        return None
    reason, *_hints = str(error).split("\n")  # which name parameters of the driver, not what stands in a URL
    return JournalError(f"{where}: {reason}", code=Code.SETTINGS_INVALID, remedy=_URL)


def translated(error: BaseException, where: str, *, unknown: bool = False) -> JournalError:
    """The JournalError to raise; `unknown`: it came in the middle of a commit that could not be asked about."""
    state = state_of(error)
    if _untold(error):
        return JournalError(f"{where}: {error}", code=Code.JOURNAL_IO, remedy=_HEAR)
    if state in {ENDED, HELD}:
        first, _, rest = str(error).partition(" ")
        return refusal(where, first, rest) if state == ENDED else busy(int(first), rest)
    for begins, code, remedy in _TABLE:
        if state.startswith(begins):
            return JournalError(f"{where}: {code.meaning} ({error})", code=code, remedy=remedy)
    if isinstance(error, ssl.SSLError):  # one that is a ValueError as well, where a certificate is refused
        return JournalError(f"{where}: {error}", code=Code.JOURNAL_IO, remedy=_UNKNOWN if unknown else _TLS)
    if isinstance(error, ValueError | TypeError):  # the driver could not encode it
        return JournalError(f"{where}: {error}", code=Code.RECORD_INVALID, remedy=_VALUE)
    reason = str(error) or ("no answer came in time" if isinstance(error, TimeoutError) else type(error).__name__)
    known = _FILES if isinstance(error, FileNotFoundError) else _SERVER
    return JournalError(f"{where}: {reason}", code=Code.JOURNAL_IO, remedy=_UNKNOWN if unknown else known)


def state_of(error: BaseException) -> str:
    """The SQLSTATE; empty for errors that did not come from the server."""
    return str(getattr(error, "sqlstate", None) or "")


def _untold(error: BaseException) -> bool:
    """Return whether the server's queue of notifications is full, which has no SQLSTATE of its own."""
    return state_of(error) == "54000" and getattr(error, "server_source_filename", None) == "async.c"


def _closed(error: BaseException) -> bool:
    """The driver's own words, without SQLSTATE, for a connection that ended or on which a farewell came in."""
    name = type(error).__name__
    return name == "InternalClientError" or (name == "InterfaceError" and "clos" in str(error))


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


class PostgresLink:
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


_SCHEMA: Final = "remit"
_NAME: Final = regex(r"[a-z_][a-z0-9_]{0,49}")


class Address(msgspec.Struct, frozen=True):
    """What a URL says."""

    dsn: str
    """For the driver; holds the password."""
    schema: str
    name: str = "remit"
    """The name that the server has for its connections."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `postgresql://user:password@host:port/database?schema=NAME&sslmode=…`. Raises SettingsError."""
        try:
            parts = urlsplit(url)
            query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            _ = parts.port
        except ValueError:  # it quotes what stands where a port should: the beginning of a password that holds a /
            raise SettingsError("the journal's URL cannot be read", remedy=_REMEDY) from None
        if parts.netloc.count("@") > 1 or "@" in parts.path + parts.fragment or ("@" in parts.query and not parts.path):
            raise SettingsError("the journal's URL has an @ in the wrong place", remedy=_REMEDY)
        options = dict(query)
        schema = options.get("schema", _SCHEMA)
        if not _NAME.fullmatch(schema):
            msg = f"{schema!r} is not a valid schema name: use at most 50 lower-case letters, digits and _"
            raise SettingsError(msg, code=Code.SETTINGS_INVALID, remedy=_REMEDY)
        rest = urlencode([(key, value) for key, value in query if key != "schema"], safe="/")
        return cls(urlunsplit(parts._replace(query=rest)), schema, options.get("application_name", "remit"))

    def __str__(self) -> str:
        """Without user, password and anything else that may be secret."""
        parts = urlsplit(self.dsn)
        host = parts.netloc.rpartition("@")[2] or dict(parse_qsl(parts.query)).get("host", "")
        return f"postgresql://{host}{parts.path}?schema={self.schema}"

    def __repr__(self) -> str:
        """As `str`: an address may end in a log."""
        return f"Address({self})"


_REMEDY: Final = (
    "Give postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME; "
    "in USER and PASSWORD, write @ : / ? # [ ] % as %40 %3A %2F %3F %23 %5B %5D %25."
)
