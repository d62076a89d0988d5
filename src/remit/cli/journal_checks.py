"""The checks of the journal in `remit doctor`."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.capability import Check
from remit.cli.context import MEMORY
from remit.errors import RemitError

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.settings import Settings

_LOW: Final = 1024**3
_FULL: Final = 100 * 1024**2
_WAL: Final = b"\x02\x02"
"""Bytes 18 and 19 of a database in WAL mode (https://www.sqlite.org/fileformat.html)."""


async def journal_checks(settings: Settings) -> AsyncIterator[Check]:
    """Yield how the journal is: room on the disk, whether it can be written to and is whole, its log and its mode."""
    url = settings.journal.url
    if url == MEMORY:
        yield Check("journal", "warn", "in memory: nothing is saved", "Set journal.url to a path.")
        return
    path = settings.journal.file
    if path is not None:
        yield _disk(path)
        if (missing := _creatable(path)) is not None:
            yield missing
            return
    from remit.clock import SystemClock
    from remit.wiring.journal import find_key, open_journal

    try:
        journal = open_journal(settings, SystemClock())
    except RemitError as error:
        yield Check.failed("journal", error)
        return
    try:
        key_file = await find_key(journal, settings)
        yield await _writable(journal, f"{path}, {_size(path)}" if path is not None else journal.url)
        yield await _whole(journal)
        yield _sealed(journal, key_file)
    except RemitError as error:
        yield Check.failed("journal", error)
    finally:
        await journal.close()
    if path is not None:
        yield _wal(path)
        yield _mode(path)


def _disk(path: Path) -> Check:
    free = shutil.disk_usage(_existing(path.parent)).free
    detail = f"{free / _LOW:.1f} GiB free"
    if free < _FULL:
        return Check("disk", "fail", detail, f"Free space under {path.parent}.")
    if free < _LOW:
        return Check("disk", "warn", detail, f"Free space under {path.parent} soon.")
    return Check("disk", "ok", detail)


def _creatable(path: Path) -> Check | None:
    """Return whether a journal can be made; None where there is one."""
    if path.exists():
        return None
    folder = _existing(path.parent)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        remedy = f"Make {folder} writable, or choose another journal."
        return Check("journal", "fail", f"{path} cannot be created", remedy)
    return Check("journal", "ok", f"{path} is created when the first job starts")


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))


async def _writable(journal: Journal, what: str) -> Check:
    from remit.journal.standing import RETIRED, refusal, standing_of

    standing = await standing_of(journal)
    if standing.state in RETIRED:
        refused = refusal(journal.url, standing.state, standing.place)
        return Check("journal", "warn", refused.message, refused.remedy)
    if journal.is_older:
        return Check("journal", "ok", f"{what}, made by an older Remit; what first writes to it brings it up to date")
    await journal.put_blobs(())  # a commit of nothing: all that a commit takes, and it changes nothing
    return Check("journal", "ok", f"{what}, can be written to")


def _sealed(journal: Journal, key_file: Path | None) -> Check:
    """Return which file holds the key of this journal: it belongs to every backup, kept apart from it."""
    try:
        journal.require_key()
    except RemitError as error:
        return Check.failed("seals", error)
    if key_file is None:
        return Check("seals", "ok", "no key: anyone who can write to the journal can forge it (`remit journal seal`)")
    return Check("seals", "ok", f"the journal's key is in {key_file}; keep a copy, apart from backups of the journal")


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1024**2:.1f} MiB"


async def _whole(journal: Journal) -> Check:
    problems = await journal.integrity()
    if problems:
        return Check("integrity", "fail", "; ".join(problems[:3]), "Restore the journal from a backup.")
    return Check("integrity", "ok", "the storage reports no damage; `remit verify` checks the hashes")


def _mode(path: Path) -> Check:
    mode = path.stat().st_mode & 0o777
    if mode & 0o022:
        return Check("mode", "warn", f"others can write to {path} ({mode:o})", f"Run `chmod 600 {path}`.")
    return Check("mode", "ok", f"only its owner can write to it ({mode:o})")


def _wal(path: Path) -> Check:
    with path.open("rb") as file:
        header = file.read(20)
    if header[18:20] != _WAL:
        remedy = "Put the journal on a local disk: a network file system has no shared memory for the log."
        return Check("wal", "fail", "the journal is not in WAL mode", remedy)
    return Check("wal", "ok", "write-ahead log")
