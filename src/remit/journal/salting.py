"""Salts that hide the values of a stream with a subject, so that they can be erased and the chain stays whole.

A subject is whom the values are about, such as a customer. No value stands in an event then, at whatever depth: each
lies beside it behind 32 random bytes of its own, and the event holds the digest of both, without a preview. So the
event says nothing of the value once these bytes are gone, and no two streams share them.

    stored = salt:32 ‖ bytes        digest = SHA-256(stored)        key = "salt"

Another `key` is left for bytes that are encrypted under a key kept elsewhere. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError, NameInvalidError, PayloadErasedError
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob
from remit.journal.kinds import EvidenceAttached, Payload
from remit.journal.references import TWIN, shape_of

SALT: Final = "salt"
SALT_BYTES: Final = 32
_KEPT_AS: Final = "kept_as"
"""In a salted item of evidence: the digest under which the bytes of `raw_pointer` are kept."""

_RESTORE: Final = "Restore the journal from a backup."
_NO_KEY: Final = "Upgrade Remit, or give it access to the keys."

LONGEST_SUBJECT: Final = 200
"""Characters of a subject's name."""

Salt = Callable[[int], bytes]
S = TypeVar("S", bound=msgspec.Struct)


def fit_subject(subject: str) -> str:
    """Return a subject that a new stream may have. Raises NameInvalidError."""
    if subject != subject.strip() or not subject.isprintable() or not 0 < len(subject) <= LONGEST_SUBJECT:
        raise NameInvalidError(
            f"a subject has 1 to {LONGEST_SUBJECT} characters, none of them for control, and no blanks around it",
            remedy="Name whom the values are about, such as customer-4711.",
        )
    return subject


def erasure_of(subject: str) -> str:
    """The stream that says when a subject's values were erased; it does not say the subject's name."""
    return f"subject/{sha256(subject.encode()).removeprefix('sha256:')}"


def reveal(ref: BlobRef, stored: bytes) -> bytes:
    """The value behind a reference, out of the bytes that are kept for it.

    Raises PayloadErasedError if they were erased, ChainBrokenError if they are not those that were recorded.
    """
    if ref.key not in {"", SALT}:
        msg = f"the bytes of {ref.digest} are hidden under the key {ref.key}, which is not here"
        raise JournalError(msg, code=Code.JOURNAL_NEWER, remedy=_NO_KEY)
    if ref.key and not stored:
        raise PayloadErasedError(f"the value ({ref.bytes} bytes) was erased with its subject")
    if sha256(stored) != ref.digest:
        raise ChainBrokenError(f"the bytes kept as {ref.digest} have another digest", remedy=_RESTORE)
    return stored[SALT_BYTES:] if ref.key else stored


def salted(payloads: Sequence[Payload], blobs: Sequence[Blob], salt: Salt) -> tuple[list[Payload], tuple[Blob, ...]]:
    """The payloads with every value behind a hiding reference, and the blobs to write instead of those given.

    Raises JournalError if a payload refers to bytes that are not among `blobs`.
    """
    salting = _Salting({blob.digest: blob for blob in blobs}, salt)
    hiding = [salting.payload(payload) for payload in payloads]
    rest = [blob for blob in blobs if blob.digest not in salting.replaced]
    return hiding, (*rest, *salting.blobs)


class _Salting:
    """One commit's values."""

    def __init__(self, given: Mapping[str, Blob], salt: Salt) -> None:
        self._given = given
        self._salt = salt
        self.replaced: set[str] = set()
        self.blobs: list[Blob] = []

    def payload(self, payload: Payload) -> Payload:
        if isinstance(payload, EvidenceAttached) and payload.items:
            items = msgspec.json.encode([self._item(item) for item in payload.items])
            payload = msgspec.structs.replace(payload, items=(), items_blob=self._hide(items))
        return self._struct(payload)

    def _struct(self, struct: S) -> S:
        """The same with its values hidden, and those of the structs in it."""
        shape, changes = shape_of(type(struct)), dict[str, Any]()
        for name in shape.values:
            value, ref = getattr(struct, name, None), getattr(struct, name + TWIN)
            if isinstance(value, msgspec.Raw):
                changes |= {name: msgspec.UNSET, name + TWIN: self._hide(bytes(value))}
            elif isinstance(ref, BlobRef) and not ref.key:
                blob = self._taken(ref.digest)
                changes[name + TWIN] = self._hide(blob.data, blob.until)
        for name in shape.nested:
            held = getattr(struct, name)
            if isinstance(held, tuple):
                changes[name] = tuple([self._struct(one) for one in held])
            elif isinstance(held, msgspec.Struct):
                changes[name] = self._struct(held)
        return msgspec.structs.replace(struct, **changes)

    def _item(self, item: dict[str, Any]) -> dict[str, Any]:
        pointer = item.get("raw_pointer")
        if pointer is None:
            return item
        blob = self._taken(pointer)
        return {**item, _KEPT_AS: self._hide(blob.data, blob.until).digest}

    def _taken(self, digest: str) -> Blob:
        blob = self._given.get(digest)
        if blob is None:
            msg = f"the bytes of {digest} are stored elsewhere, and could not be erased with this stream's subject"
            raise JournalError(msg, code=Code.RECORD_INVALID, remedy="Record the value with the event.")
        self.replaced.add(digest)
        return blob

    def _hide(self, data: bytes, until: int | None = None) -> BlobRef:
        stored = self._salt(SALT_BYTES) + data
        blob = Blob(sha256(stored), stored, until)
        self.blobs.append(blob)
        return BlobRef(blob.digest, len(data), "", SALT)
