"""The journal behind a URL, and the keys it is sealed with."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from remit.clock import Clock
from remit.codes import Code
from remit.errors import JournalError, SettingsError
from remit.journal.journal import Journal
from remit.journal.keys import default_place, load, make
from remit.journal.kinds import declare
from remit.journal.port import Store
from remit.journal.seals import Seals
from remit.journal.sharded.shard import ShardStore
from remit.journal.sqlite.connection import in_use
from remit.journal.sqlite.store import EMPTY, MEMORY, SqliteStore
from remit.settings import Settings
from remit.settings.places import data_folder
from remit.settings.sections.journal import SERVERS, SQLITE, installed, shards_in
from remit.wiring.capabilities import FIRST_PARTY

_log: Final = logging.getLogger("remit.journal")


def open_journal(settings: Settings, clock: Clock) -> Journal:
    """The journal that the settings name, with its keys. Raises SettingsError."""
    for part in FIRST_PARTY:
        declare(part.kinds)
    seals = seals_of(settings)
    return Journal(open_store(settings.journal.url, clock), clock, seals=seals)


def seals_of(settings: Settings) -> Seals | None:
    """The keys of the journal; None if it has none. Raises SettingsError."""
    place = key_place(settings)
    seals = load(place) if place is not None else None
    if place is not None and seals is None and settings.journal.key_file:
        raise SettingsError(
            f"journal.key_file: {place} does not exist", remedy="Run `remit journal seal` to create it."
        )
    return seals


def key_place(settings: Settings) -> Path | None:
    """Return where the keys of the journal are, or would be; None if it can have none. Raises SettingsError."""
    journal = settings.journal
    if journal.url in {MEMORY, EMPTY}:
        return None
    if journal.key_file:
        place = Path(journal.key_file)
        if settings.file is not None and settings.folder in place.parents:
            why = f"journal.key_file: {place} is in the project folder, next to the journal that it protects"
            raise SettingsError(why, remedy="Keep it elsewhere, such as ~/.config/remit/journal.keys.")
        return place
    return default_place(data_folder(os.environ), journal.file) if journal.file is not None else None


def make_key(settings: Settings) -> None:
    """Make the key of a journal that is about to be made; without one it is not sealed. Raises SettingsError."""
    place = key_place(settings)
    try:
        if place is not None:
            make(place)
    except OSError as error:
        _log.warning("%s: %s; the journal will have no seals", place, error.strerror or error)


async def refuse_open(settings: Settings) -> None:
    """Raise JournalError (JOURNAL_LOCKED) while a process has the journal open. Nothing is known of other backends."""
    url = settings.journal.url.removeprefix(SQLITE)
    used = False
    if settings.journal.file is not None:
        used = settings.journal.file.exists() and in_use(url)
    elif url.partition("://")[0] in SERVERS:
        from remit.journal.postgres.address import Address  # noqa: PLC0415 - its driver is an extra
        from remit.journal.postgres.server import in_use as in_use_there  # noqa: PLC0415 - the same

        used = any([await in_use_there(Address.parse(one)) for one in url.split()])
    if used:
        why = "another process has the journal open"
        raise JournalError(why, code=Code.JOURNAL_LOCKED, remedy="End its workers, servers and consoles first.")


def open_store(url: str, clock: Clock) -> Store:
    """The journal behind a URL: a path, `sqlite:///path`, `postgresql://…`, `:memory:`, or of an installed backend.

    Several `postgresql://…` with spaces between them are the shards of one journal.
    Raises SettingsError.
    """
    if len(urls := shards_in(url)) > 1:
        from remit.journal.sharded.store import ShardedStore  # noqa: PLC0415 - few journals have shards

        return ShardedStore(urls, lambda one: open_shard(one, clock))
    place = url.removeprefix(SQLITE)
    scheme, separator, _ = place.partition("://")
    if not separator:
        return SqliteStore(place, clock)
    if scheme in SERVERS:
        return open_shard(url, clock)
    if (backend := installed(scheme)) is not None:
        store: Store = backend.load()(url, clock)
        return store
    remedy = "Give a path, sqlite:///path, postgresql://… or :memory:."
    raise SettingsError(f"no journal backend is named {scheme!r}", code=Code.SETTINGS_INVALID, remedy=remedy)


def open_shard(url: str, clock: Clock) -> ShardStore:
    """The store of one `postgresql://` URL: of a whole journal, or of one shard. Raises SettingsError."""
    if url.partition("://")[0] not in SERVERS:
        raise SettingsError("a shard is in PostgreSQL", remedy="Give postgresql://…")
    from remit.journal.postgres.store import PostgresStore  # noqa: PLC0415 - its driver is an extra

    return PostgresStore(url, clock)
