"""Reads what stands beside the events: large values and schemas, by digest."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.journal.blobs import BlobRef
from remit.journal.kinds import OptionalRaw, OptionalRef
from remit.journal.port import Reading
from remit.journal.salting import reveal

RESTORE: Final = "Restore the journal from a backup."


async def value(store: Reading, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
    """As Journal.value."""
    if isinstance(ref, BlobRef):
        data = await store.blob(ref.digest)
        if data is None:
            msg = f"the bytes of {ref.digest} ({ref.bytes} bytes) are gone"
            raise ChainBrokenError(msg, code=Code.BLOB_MISSING, remedy=RESTORE)
        return reveal(ref, data)
    return bytes(inline) if isinstance(inline, msgspec.Raw) else None


async def schema(store: Reading, digest: str) -> Any:
    """As Journal.schema."""
    data = await store.blob(digest)
    if data is None:
        return None
    if sha256(data) != digest:
        raise ChainBrokenError(f"the schema kept as {digest} has another digest", remedy=RESTORE)
    return msgspec.json.decode(data)
