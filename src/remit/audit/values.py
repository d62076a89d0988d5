"""The values beside the events of a package: each is read once, and written as it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from remit.canonical import sha256
from remit.errors import ChainBrokenError
from remit.journal import values
from remit.journal.kinds import BytesKept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remit.journal.journal import Journal
    from remit.journal.kinds import OptionalRaw, OptionalRef, Payload
    from remit.journal.references import Digest

State = Literal["kept", "erased", "expired", "missing", "redacted"]
_GONE: dict[str, State] = {"timed": "expired", "own": "expired", "shared": "missing", "policy": "missing"}
"""The state of bytes that are not there, and need not be, by whose they are: an older Remit kept less."""


class PackagedValues:
    """Reads values for an examination (`Values`), and notes the state of each."""

    def __init__(self, journal: Journal, write: Callable[[str, bytes], object], *, redacted: bool) -> None:
        """Hand each value to `write`; if `redacted`, every value is left out on purpose."""
        self.states: dict[str, State] = {}
        """By digest."""
        self._journal = journal
        self._write = write
        self._redacted = redacted

    async def value(self, inline: OptionalRaw, ref: OptionalRef) -> bytes | None:
        """As Journal.value."""
        return await values.value(self, inline, ref)

    async def blob(self, digest: str) -> bytes | None:
        """As Journal.blob."""
        data = await self._journal.blob(digest)
        if data is not None and digest not in self.states:
            self.states[digest] = "erased" if not data else "redacted" if self._redacted else "kept"
            if self.states[digest] == "kept":
                self._write(digest, data)
        return data

    def note_absent(self, digests: Iterable[Digest]) -> None:
        """Take in what an examination did not find, and need not."""
        for named in digests:
            self.states.setdefault(named.digest, _GONE[named.whose])

    async def note_expired(self, payloads: Sequence[Payload | None]) -> None:
        """Take in bytes whose time is over, which an examination passes by. Raise ChainBrokenError for other bytes."""
        for payload in payloads:
            if isinstance(payload, BytesKept) and payload.until is not None and payload.digest not in self.states:
                data = await self.blob(payload.digest)
                if data and sha256(data) != payload.digest:
                    msg = f"the bytes kept as {payload.digest} have another digest"
                    raise ChainBrokenError(msg, remedy=values.RESTORE)
                self.states.setdefault(payload.digest, "expired")
