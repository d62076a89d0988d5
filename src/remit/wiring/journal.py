"""The journal behind a URL, and the keys it is sealed with."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.clock import Clock
from remit.codes import Code
from remit.errors import JournalError, SettingsError
from remit.journal.event import HeadQuery, StreamHead
from remit.journal.journal import PAGE, Journal
from remit.journal.kinds import declare
from remit.journal.port import Store
from remit.journal.seals import ID_BYTES, Seals, default_folder, default_place, find, load, make, make_for
from remit.journal.sqlite.connection import in_use
from remit.journal.sqlite.store import EMPTY, MEMORY, SqliteStore
from remit.settings import Settings
from remit.settings.places import data_folder
from remit.settings.sections.process import SERVERS, SQLITE, installed, shards_in
from remit.wiring.capabilities import FIRST_PARTY

if TYPE_CHECKING:
    from remit.journal.sharded.shard import ShardStore

_log: Final = logging.getLogger("remit.journal")


def open_journal(settings: Settings, clock: Clock) -> Journal:
    """The journal that the settings name, with the keys of its path; `find_key` finds others. Raises SettingsError."""
    for part in FIRST_PARTY:
        declare(part.kinds)
    seals = seals_of(settings)
    return Journal(open_store(settings.journal.url, clock), clock, seals=seals)


async def find_key(journal: Journal, settings: Settings) -> Path | None:
    """Give a journal the keys that its heads are sealed under, wherever it lies now, and return their file.

    Heads name their key, so a journal that was renamed, copied or mounted elsewhere finds its own among the user's
    (rule 24). If none is here, `missing_key` says so, and nothing is written to the journal. Raises JournalError.
    """
    place = await _found(journal, settings) if settings.journal.url != MEMORY else None
    journal.key_file = str(place or "")
    return place


async def _found(journal: Journal, settings: Settings) -> Path | None:
    place = key_place(settings)
    own, sealed = [place] if place is not None else [], list[StreamHead]()
    for limit in (1, PAGE):  # the newest is enough, but where someone wrote it without the key
        sealed = [head for head in await journal.heads(HeadQuery(limit=limit)) if head.seal]
        if journal.seals is not None and find(_keys_of(sealed), own) is not None:
            return place
    if not sealed:
        return place if journal.seals is not None else None
    others = () if settings.journal.key_file else sorted(default_folder(data_folder(os.environ)).glob("*.keys"))
    place = find(_keys_of(sealed), others)
    journal.seals = load(place) if place is not None else None
    journal.missing_key = sealed[0].seal[:ID_BYTES] if place is None else b""
    return place


def _keys_of(heads: Sequence[StreamHead]) -> set[bytes]:
    return {head.seal[:ID_BYTES] for head in heads}


def seals_of(settings: Settings) -> Seals | None:
    """The keys of the journal; None if it has none. Raises SettingsError."""
    place = key_place(settings)
    seals = load(place) if place is not None else None
    if place is not None and seals is None and settings.journal.key_file:
        raise SettingsError(
            f"journal.key_file: {place} does not exist",
            remedy="Bring it from where the journal was sealed; of one without seals `remit journal seal` makes it.",
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
            reason = f"journal.key_file: {place} is in the project folder, next to the journal that it protects"
            raise SettingsError(reason, remedy="Keep it elsewhere, such as ~/.config/remit/journal.keys.")
        return place
    return default_place(data_folder(os.environ), journal.file) if journal.file is not None else None


def make_key(settings: Settings) -> None:
    """Make the key of a journal that is about to be made; without one it is not sealed. Raises SettingsError."""
    place, file = key_place(settings), settings.journal.file
    try:
        if place is not None and file is not None and not settings.journal.key_file:
            make_for(place, file)
        elif place is not None:
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
        from remit.journal.postgres.server import Address  # noqa: PLC0415 - its driver is an extra
        from remit.journal.postgres.server import in_use as in_use_there  # noqa: PLC0415 - the same

        used = any([await in_use_there(Address.parse(address)) for address in url.split()])
    if used:
        reason = "another process has the journal open"
        raise JournalError(reason, code=Code.JOURNAL_LOCKED, remedy="End its workers, servers and consoles first.")


def open_store(url: str, clock: Clock) -> Store:
    """The journal behind a URL: a path, `sqlite:///path`, `postgresql://…`, `:memory:`, or of an installed backend.

    Several `postgresql://…` with spaces between them are the shards of one journal.
    Raises SettingsError.
    """
    if len(urls := shards_in(url)) > 1:
        from remit.journal.sharded.store import ShardedStore  # noqa: PLC0415 - few journals have shards

        return ShardedStore(urls, lambda address: open_shard(address, clock))
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
