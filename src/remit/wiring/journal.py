"""The journal behind a URL."""

from __future__ import annotations

from remit.clock import Clock
from remit.codes import Code
from remit.errors import SettingsError
from remit.journal.port import Store
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.settings.sections.journal import SERVERS


def open_store(url: str, clock: Clock) -> Store:
    """The journal backend behind a URL: a path, `sqlite:///path`, `postgresql://…` or `:memory:`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return SqliteStore(url, clock)
    if scheme == "sqlite":
        return SqliteStore(rest.removeprefix("/") if rest == "/" + MEMORY else rest, clock)
    if scheme in SERVERS:
        from remit.journal.postgres.store import PostgresStore  # noqa: PLC0415 - its driver is an extra

        return PostgresStore(url, clock)
    remedy = "Give a path, sqlite:///path, postgresql://… or :memory:."
    raise SettingsError(f"no journal backend is named {scheme!r}", code=Code.SETTINGS_INVALID, remedy=remedy)
