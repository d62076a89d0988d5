"""The values beside the events of a package: each with its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.journal.kinds import BytesKept, decode
from remit.journal.references import digests_in, digests_of, values_in

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal

State = Literal["kept", "erased", "expired", "missing", "redacted"]


class Value(NamedTuple):
    """A value by its digest."""

    sha256: str
    state: State


class Values:
    """Collects the values that events name, reading each once."""

    def __init__(self, journal: Journal, *, redacted: bool) -> None:
        """Read from `journal`; if `redacted`, every value is left out on purpose."""
        self._journal = journal
        self._redacted = redacted
        self._whose: dict[str, Literal["shared", "policy", "timed", "own", "value"]] = {}

    async def note(self, event: Event) -> None:
        """Take in what an event names. Raise ChainBrokenError if a value is not what was recorded."""
        payload = decode(event.kind, event.data)
        if payload is None:
            return
        if isinstance(payload, BytesKept) and payload.until is not None:
            self._whose[payload.kept_blob.digest] = "timed"
        for named in digests_in(payload):
            self._whose.setdefault(named.digest, named.whose)
        for value in values_in(payload):
            if value.ref is not None:
                self._whose.setdefault(value.ref.digest, "value")
            if value.holds is None:
                continue
            stored = await self._journal.blob(value.ref.digest) if value.ref is not None else value.inline_bytes
            salt = 32 if value.ref is not None and value.ref.key else 0
            for named in digests_of(value, stored[salt:]) if stored else ():
                self._whose.setdefault(named.digest, named.whose)

    async def states(self) -> list[Value]:
        """Return each with its state, by digest. Raise ChainBrokenError for one that is gone without a reason."""
        return [Value(digest, await self._state(digest)) for digest in sorted(self._whose)]

    async def bytes(self, digest: str) -> bytes:
        """Return the bytes of one that is kept."""
        return await self._journal.blob(digest) or b""

    async def _state(self, digest: str) -> State:
        data, whose = await self._journal.blob(digest), self._whose[digest]
        if data:
            if sha256(data) != digest:
                raise ChainBrokenError(f"the bytes kept as {digest} have another digest", remedy="Restore a backup.")
            return "redacted" if self._redacted else "kept"
        if data == b"":
            return "erased"
        if whose in {"timed", "own"}:
            return "expired"
        if whose in {"shared", "policy"}:
            return "missing"  # an older Remit did not keep it
        raise ChainBrokenError(f"the bytes of {digest} are gone", code=Code.BLOB_MISSING, remedy="Restore a backup.")
