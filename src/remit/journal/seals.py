"""A head's seal: what shows that the writer of the head has the key. The chain says only what was recorded.

    seal   = id of the key:8 ‖ HMAC-SHA256(key, "remit-seal-1" 00 ‖ length of fields:4 ‖ fields ‖ chain value:32)
    fields = [kind, state, closed, subject, title, labels] as JSON, labels by name          integers big-endian
    id     = the first 8 bytes of SHA-256("remit-seal-key" 00 ‖ key)

The chain value covers the stream's name and every event. The states that a lease changes one into another without an
event (OPEN_STATES) all count as `open`. Pure; keys.py keeps the keys.

The file of the keys that heads are sealed with: one key a line in hexadecimal, the one in use first.

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
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Final

import msgspec

from remit.atomic import replace_file, written_beside
from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError, SettingsError
from remit.journal.event import OPEN_STATES, UNSET, HeadPatch, StreamHead

KEY_BYTES: Final = 32
ID_BYTES: Final = 8
_BLOCK: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))
_DOMAIN: Final = b"remit-seal-1\0"
_ID_DOMAIN: Final = b"remit-seal-key\0"
_SEALED_AS: Final = dict.fromkeys(OPEN_STATES, "open")
_fields: Final = msgspec.json.Encoder(order="deterministic").encode
_LOOK: Final = "Check the stream with `remit trace`; if it is right, run `remit journal seal`."
_ANOTHER: Final = "Someone with another key wrote it: check it with `remit trace`, then `remit journal seal --vouch`."
_BRING: Final = (
    "Copy the key file that `remit doctor` names where the journal was made to ~/.local/share/remit/journal-keys, or "
    "name it (journal.key_file). If it is lost: `remit journal seal --vouch`, which records who vouches for the past."
)
_FORGED: Final = "Someone without the key wrote to the journal: restore a backup."
_LEASED: Final = "An older Remit left it so when a failed ticket was leased: run `remit journal seal`."

Sealer = Callable[[bytes], bytes]
"""Makes the seal of a head out of its chain value; its other fields are taken in already."""


class SealCoverage(msgspec.Struct, frozen=True, array_like=True):
    """What a seal covers beside the chain value, in this order."""

    kind: str
    state: str = ""
    closed: bool = False
    subject: str = ""
    title: str = ""
    labels: dict[str, str] = {}

    def patched(self, patch: HeadPatch, *, created: bool) -> SealCoverage:
        """The same after a patch; a subject counts only where the stream is made."""
        return SealCoverage(
            self.kind,
            self.state if patch.state is UNSET else patch.state,
            self.closed if patch.closed is UNSET else patch.closed,
            patch.subject if created and patch.subject is not UNSET else self.subject,
            self.title if patch.title is UNSET else patch.title,
            self.labels if patch.labels is UNSET else patch.labels,
        )


def covered(head: StreamHead) -> SealCoverage:
    """Return what the seal of a head covers beside its chain value."""
    return SealCoverage(head.kind, head.state, head.closed, head.subject, head.title, head.labels)


class Seals:
    """Makes seals under one key, and knows those of others."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = {key_id(key): _Key(key) for key in keys}
        self._current = self._keys[key_id(keys[0])]

    @property
    def current(self) -> bytes:
        """The id of the key that new seals are made under."""
        return self._current.id

    def knows(self, head: StreamHead) -> bool:
        """Return whether the key that a head names is here; it says nothing of the seal."""
        return head.seal[:ID_BYTES] in self._keys

    def over(self, fields: SealCoverage) -> Sealer:
        """Return what seals heads with these fields."""
        return self._current.over(fields)

    def seal(self, head: StreamHead) -> bytes:
        """The seal that a head should have."""
        return self._current.over(covered(head))(head.hash)

    def doubt(self, head: StreamHead) -> ChainBrokenError | None:
        """Return why a head is not to be believed: HEAD_UNSEALED or HEAD_FORGED; None if its seal holds."""
        if not head.seal:
            reason = f"{head.stream}: its head has no seal, or someone removed it"
            return ChainBrokenError(reason, code=Code.HEAD_UNSEALED, remedy=_LOOK)
        if not self.knows(head):
            reason = f"{head.stream}: its head is sealed under the key {head.seal[:ID_BYTES].hex()}, not the journal's"
            return ChainBrokenError(reason, code=Code.HEAD_UNSEALED, remedy=_ANOTHER)
        if not self._holds(head):
            if self.before_lease(head) is not None:
                reason = f"{head.stream}: its head is `{head.state}`, and was sealed as `failed`"
                return ChainBrokenError(reason, code=Code.HEAD_FORGED, remedy=_LEASED)
            reason = f"{head.stream}: its head was written by someone without the key"
            return ChainBrokenError(reason, code=Code.HEAD_FORGED, remedy=_FORGED)
        return None

    def before_lease(self, head: StreamHead) -> StreamHead | None:
        """The head as it was sealed, if it differs in its state alone, as an older Remit leased a failed ticket."""
        failed = msgspec.structs.replace(head, state="failed", due_at=None)
        return failed if head.state in OPEN_STATES and head.seal and self._holds(failed) else None

    def _holds(self, head: StreamHead) -> bool:
        key = self._keys.get(head.seal[:ID_BYTES])
        return key is not None and compare_digest(key.over(covered(head))(head.hash), head.seal)


def keyless(key: bytes) -> JournalError:
    """Return why a journal that is sealed under this key is neither checked nor written to where the key is not."""
    reason = f"the journal is sealed under the key {key.hex()}, which is not here"
    return JournalError(reason, code=Code.KEY_MISSING, remedy=_BRING)


def key_id(key: bytes) -> bytes:
    """Return what a key is called; it says nothing of the key."""
    return sha256(_ID_DOMAIN + key).digest()[:ID_BYTES]


class _Key:
    """One key, with both halves of HMAC begun: twice as fast as the `hmac` module for messages of this size."""

    def __init__(self, key: bytes) -> None:
        self.id = key_id(key)
        padded = key.ljust(_BLOCK, b"\0")
        self._inner, self._outer = sha256(padded.translate(_INNER) + _DOMAIN), sha256(padded.translate(_OUTER))

    def over(self, fields: SealCoverage) -> Sealer:
        try:
            data = _fields(msgspec.structs.replace(fields, state=_SEALED_AS.get(fields.state, fields.state)))
        except UnicodeEncodeError as error:
            reason = f"the head cannot be written as JSON: {error.reason}"
            raise JournalError(reason, code=Code.RECORD_INVALID, remedy="Remove lone surrogates.") from error
        begun = self._inner.copy()
        begun.update(len(data).to_bytes(4, "big") + data)
        name, inner, outer = self.id, begun.copy, self._outer.copy

        def seal(chained: bytes) -> bytes:
            first, second = inner(), outer()
            first.update(chained)
            second.update(first.digest())
            return name + second.digest()

        return seal


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
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _unusable(place, "it is not a regular file", setting)
        if status.st_uid not in {os.geteuid(), 0} or status.st_mode & (0o037 if _shared(status) else 0o077):
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


def _shared(status: os.stat_result) -> bool:
    """Return whether root lets a group of this process read a file, as Kubernetes does with `fsGroup`."""
    return status.st_uid == 0 and status.st_gid != 0 and status.st_gid in {os.getegid(), *os.getgroups()}


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


def _unusable(place: Path, reason: str, setting: str) -> SettingsError:
    return SettingsError(
        f"{place}: {reason}", remedy=f"Make it readable only by you (chmod 600), or choose another {setting}."
    )
