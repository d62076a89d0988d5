"""The keeper of a call: what a provider keeps is recorded in the stream of the call, and lies beside its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.canonical import sha256
from remit.errors import ChainBrokenError, PayloadErasedError
from remit.journal.blobs import BlobRef
from remit.journal.event import Blob
from remit.journal.kinds import UNSET, BytesKept, decode

if TYPE_CHECKING:
    from remit.gateway.call import Call


class CallKeeper:
    """Keeps bytes for one announced call."""

    def __init__(self, call: Call) -> None:
        self._journal = call.journal
        self._writer = call.writer
        self._invocation_id = call.invocation_id
        self._step = call.request.step

    async def put(self, data: bytes, *, until: int | None = None) -> str:
        """Record `bytes_kept`, flushed, with the bytes beside it; their digest. Raises JournalError."""
        digest = sha256(data)
        ref = BlobRef(digest, len(data), "")
        kept = BytesKept(invocation_id=self._invocation_id, step=self._step, kept_blob=ref, until=until)
        await self._journal.append(self._writer, kept, synced=True, blobs=(Blob(digest, data, until),))
        return digest

    async def get(self, digest: str) -> bytes | None:
        """The bytes of a digest; None if they are not kept, or no more. Raises JournalError."""
        if self._writer.subject:
            return await self._beside(digest)
        data = await self._journal.blob(digest)
        if data is not None and sha256(data) != digest:
            raise ChainBrokenError(f"the bytes kept as {digest} have another digest", remedy="Restore a backup.")
        return data

    async def _beside(self, digest: str) -> bytes | None:
        """In a stream with a subject bytes are not kept under their own digest: look at what was kept."""
        for event in await self._journal.read(self._writer.stream):
            kept = decode(event.kind, event.data)
            if isinstance(kept, BytesKept) and await self._journal.blob(kept.digest) is not None:
                try:
                    data = await self._journal.value(UNSET, kept.kept_blob)
                except PayloadErasedError:
                    continue
                if data is not None and sha256(data) == digest:
                    return data
        return None
