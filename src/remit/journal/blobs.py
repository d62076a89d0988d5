"""Where a value is kept: in its event while it is small, by digest once it is not."""

from __future__ import annotations

from typing import Final

import msgspec

from remit.canonical import sha256
from remit.journal.event import Blob
from remit.redact import preview

INLINE_LIMIT: Final = 8 * 1024
"""Bytes up to which a JSON value stays in its event."""


class BlobRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stands in an event for a value kept by digest."""

    digest: str
    bytes: int
    preview: str
    key: str = ""
    """The way in which the bytes are hidden: `salt` if 32 random bytes come before them; empty: not at all."""


class Packed(msgspec.Struct, frozen=True):
    """A JSON value ready to be recorded: exactly one of `inline` and `ref` is set."""

    inline: msgspec.Raw | msgspec.UnsetType
    ref: BlobRef | msgspec.UnsetType
    blobs: tuple[Blob, ...]


def pack(encoded: bytes) -> Packed:
    """Decide where encoded JSON is kept."""
    if len(encoded) <= INLINE_LIMIT:
        return Packed(msgspec.Raw(encoded), msgspec.UNSET, ())
    digest = sha256(encoded)
    return Packed(msgspec.UNSET, BlobRef(digest, len(encoded), preview(encoded)), (Blob(digest, encoded),))
