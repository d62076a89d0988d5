"""Reads what stands beside the events: large values and schemas, by digest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError
from remit.journal.blobs import BlobRef
from remit.journal.event import Fold
from remit.journal.kinds import OptionalRaw, OptionalRef
from remit.journal.port import Store
from remit.journal.salting import reveal

RESTORE: Final = "Restore the journal from a backup."
_UNWRITABLE: Final = frozenset({Code.JOURNAL_MISSING, Code.JOURNAL_READ_ONLY, Code.JOURNAL_LOCKED, Code.JOURNAL_FULL})
"""Why a fold may not be kept just now."""


class Blobs(Protocol):
    """Reads the bytes that lie beside events."""

    async def blob(self, digest: str) -> bytes | None:
        """Return the bytes kept under a digest; empty: they were erased; None: they are not there."""
        ...


async def value(store: Blobs, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
    """As Journal.value."""
    if isinstance(ref, BlobRef):
        data = await store.blob(ref.digest)
        if data is None:
            msg = f"the bytes of {ref.digest} ({ref.bytes} bytes) are gone"
            raise ChainBrokenError(msg, code=Code.BLOB_MISSING, remedy=RESTORE)
        return reveal(ref, data)
    return bytes(inline) if isinstance(inline, msgspec.Raw) else None


async def schema(store: Blobs, digest: str) -> Any:
    """As Journal.schema."""
    data = await store.blob(digest)
    if data is None:
        return None
    if sha256(data) != digest:
        raise ChainBrokenError(f"the schema kept as {digest} has another digest", remedy=RESTORE)
    return msgspec.json.decode(data)


class Folds:
    """The folds of one journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, name: str, parts: Iterable[str] = ()) -> list[Fold]:
        """A fold that was kept, and these parts of it, of one moment."""
        return await self._store.folds(name, tuple(parts))

    async def keep(self, folds: Sequence[Fold], before: int) -> bool:
        """Keep a fold in the place of the one kept at the position `before`; False if another one is kept by now."""
        return await self._store.keep_folds(folds, before)

    async def keep_if_writable(self, folds: Sequence[Fold], before: int) -> bool | None:
        """The same; None if nothing can be written just now: they are right all the same, and used without that.

        Nor is a journal of an older Remit brought to today's schema for them: they are made by looking (rule 13).
        """
        if self._store.is_older():
            return None
        try:
            return await self.keep(folds, before)
        except JournalError as error:
            if error.code not in _UNWRITABLE:
                raise
            return None
