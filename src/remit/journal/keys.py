"""The file of the keys that heads are sealed with: one key a line in hexadecimal, the one in use first.

It lies outside the project folder, so that who can write the journal need not be able to read it. By default there is
one for each journal that Remit made here, found by the id that heads name (rule 24): its own name says only where the
journal was made. A setting names one that several machines share.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from remit.atomic import replace_file, written_beside
from remit.errors import SettingsError
from remit.journal.seals import KEY_BYTES, Seals, key_id

_LONGEST: Final = 64 * 1024
_ATTEMPTS: Final = 3
"""To open a file behind a link that changes meanwhile."""


def default_folder(data: Path) -> Path:
    """Return the folder of the user's keys below that of their data."""
    return data / "journal-keys"


def default_place(data: Path, journal: Path) -> Path:
    """Return where the keys of a journal's file are put when it is made."""
    return default_folder(data) / f"{hashlib.sha256(os.fsencode(journal.resolve())).hexdigest()[:40]}.keys"


def find(ids: Collection[bytes], places: Sequence[Path]) -> Path | None:
    """Return the first of these files that holds a key with one of these ids; other files are passed by."""
    for place in places:
        with contextlib.suppress(SettingsError):
            if any(key_id(key) in ids for key in read(place)):
                return place
    return None


def load(place: Path) -> Seals | None:
    """The seals under the keys in a file; None if there is none.

    Raises SettingsError if others can read or change it, or if it holds anything else.
    """
    keys = read(place)
    return Seals(keys) if keys else None


def read(place: Path) -> list[bytes]:
    """The keys in a file, the one in use first; empty if it is not there. Raises as `load` does."""
    lines = contents(place, "journal.key_file").split()
    if not lines:
        return []
    try:
        keys = [bytes.fromhex(line.decode()) for line in lines]
    except ValueError:  # it quotes what stands there
        raise _unusable(place, "it does not contain keys", "journal.key_file") from None
    if any(len(key) != KEY_BYTES for key in keys):
        raise _unusable(place, f"it does not contain keys of {KEY_BYTES} bytes", "journal.key_file")
    return keys


def contents(place: Path, setting: str) -> bytes:
    """The contents of a file of keys that a setting names; empty if it is not there.

    It may be a link to a file in its own folder or below, as the secrets that Kubernetes mounts are. Raises
    SettingsError if others can read or change the file, if a link leads elsewhere, or if it is empty.
    """
    try:
        descriptor = _opened(place, setting)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(place, error.strerror or str(error), setting) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _unusable(place, "it is not a regular file", setting)
        if found.st_uid not in {os.geteuid(), 0} or found.st_mode & (0o037 if _shared(found) else 0o077):
            raise _unusable(place, "others may read or change it", setting)
        data = os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)
    if not data.strip():
        raise _unusable(place, "it does not contain keys", setting)
    return data


def _opened(place: Path, setting: str) -> int:
    """Open a file of keys. Raises OSError, or SettingsError for a link that leads elsewhere."""
    for _ in range(_ATTEMPTS):
        try:
            target = place.resolve() if place.is_symlink() else place
        except RuntimeError:  # until Python 3.13, for a link that leads round
            break
        if target is not place and not target.is_relative_to(place.parent.resolve()):
            raise _unusable(place, "it is a link that leads out of its folder", setting)
        try:
            return os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            if target is place:
                raise
            # A mounted secret was replaced at this moment.
    raise _unusable(place, "it is a link to nothing", setting)


def _shared(found: os.stat_result) -> bool:
    """Return whether root lets a group of this process read a file, as Kubernetes does with `fsGroup`."""
    return found.st_uid == 0 and found.st_gid != 0 and found.st_gid in {os.getegid(), *os.getgroups()}


def make(place: Path) -> None:
    """Make a file with a new key, unless there is one: of several processes that try, one does it. Raises OSError."""
    keep_new(place, _text([os.urandom(KEY_BYTES)]))


def make_for(place: Path, journal: Path) -> None:
    """Make the key of a journal that is not there yet, and its empty file: one process does both. Raises OSError.

    A key that lies there already is of a journal that was made at that path before, and may be elsewhere by now: it
    is kept under its id.
    """
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(place.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if journal.exists():
            return
        with contextlib.suppress(SettingsError):
            if former := read(place):
                place.replace(place.with_name(f"{key_id(former[0]).hex()}.keys"))
        make(place)
        journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(journal, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    finally:
        os.close(lock)


def keep_new(place: Path, data: bytes) -> None:
    """Make a file with these bytes, unless there is one, and its folder. Raises OSError."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole = written_beside(place, data)
    try:
        with contextlib.suppress(FileExistsError):
            place.hardlink_to(whole)  # whole or not there, and never in place of another
    finally:
        whole.unlink()


def write(place: Path, keys: Sequence[bytes]) -> None:
    """Put these keys in the place of those in the file. Raises OSError."""
    replace_file(place, _text(keys))


def _text(keys: Sequence[bytes]) -> bytes:
    return b"".join(key.hex().encode() + b"\n" for key in keys)


def _unusable(place: Path, why: str, setting: str) -> SettingsError:
    return SettingsError(
        f"{place}: {why}", remedy=f"Make it readable only by you (chmod 600), or choose another {setting}."
    )
