"""A backup of a journal in use: a file that holds it as of one moment, and runs no jobs.

1. FILE.partial is written as of one moment     a crash leaves it; the next backup begins again
2. leases in it lapse, and it is marked a copy  journal_copied, in its own stream `journal`
3. it is checked, if that is asked for
4. it gets its name                              a file of that name was there before, or is now: never a part
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from remit.atomic import rename
from remit.codes import Code
from remit.errors import ChainBrokenError, StateError
from remit.journal.event import HeadQuery
from remit.journal.journal import Journal
from remit.journal.retirement import mark_copied
from remit.journal.scan import every_head

if TYPE_CHECKING:
    from pathlib import Path

_ELSEWHERE = "Use the server's own tools, such as pg_dump, or `remit journal copy --backup` while no process works."


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was made."""

    file: str
    bytes: int = 0
    streams: int = 0
    """Streams that were checked."""
    events: int = 0
    verified: bool = False
    key_file: str = ""
    """The file of the journal's key, which is not in the backup; empty: it has none."""
    problems: tuple[str, ...] = ()
    """Damage that was found; it was not kept then."""

    @property
    def ok(self) -> bool:
        """Return whether it is there, and nothing wrong with it."""
        return not self.problems


async def back_up(source: Journal, file: Path, *, verify: bool) -> Backup:
    """Write the journal to a file.

    Raises StateError (BACKUP_ELSEWHERE) if its backend cannot do that, DISK_FULL or UsageError if the file cannot be
    written.
    """
    partial = file.with_name(f"{file.name}.partial")
    _remove(partial)
    try:
        backup = await _written(source, partial, Backup(file=str(file), verified=verify, key_file=source.key_file))
    except BaseException:
        _remove(partial)
        raise
    if backup.problems:
        _remove(partial)
        return backup
    return msgspec.structs.replace(backup, bytes=_renamed(partial, file))


async def _written(source: Journal, partial: Path, backup: Backup) -> Backup:
    store = await source.snapshot(str(partial))
    if store is None:
        reason = f"{source.url} is not a file that Remit can back up while it is in use"
        raise StateError(reason, code=Code.BACKUP_ELSEWHERE, remedy=_ELSEWHERE)
    copy = Journal(store, source.clock, seals=source.seals)
    copy.missing_key = source.missing_key
    try:
        await mark_copied(copy, source.url, complete=True)
        return await _checked(copy, backup) if backup.verified else backup
    finally:
        await copy.close()


async def _checked(journal: Journal, backup: Backup) -> Backup:
    problems, proven = list(await journal.integrity()), set[str]()
    streams = events = 0
    async for head in every_head(journal, HeadQuery()):
        streams += 1
        try:
            events += (await journal.examine(head.stream, proven)).events
        except ChainBrokenError as error:
            problems.append(f"{error.code.name}: {error.message}")
    return msgspec.structs.replace(backup, streams=streams, events=events, problems=tuple(problems))


def _remove(partial: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        place = partial.with_name(partial.name + ending)
        if place.exists():  # on read-only media nothing that is not there can be removed either
            place.unlink(missing_ok=True)


def _renamed(partial: Path, file: Path) -> int:
    """Give the file its name, durably; return its size."""
    with partial.open("rb") as whole:
        os.fsync(whole.fileno())
    rename(partial, file)
    return file.stat().st_size
