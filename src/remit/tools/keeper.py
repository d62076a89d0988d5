"""Where a provider keeps bytes beside the record: artifacts, snapshots, whatever a result names by digest."""

from __future__ import annotations

from typing import Protocol

from remit.canonical import sha256


class Keeper(Protocol):
    """Keeps bytes for the stream that a call is recorded in."""

    async def put(self, data: bytes, *, until: int | None = None) -> str:
        """Keep bytes durably; their digest, `sha256:` and 64 hexadecimal digits.

        They are kept for good, so that a replay finds them, or `until` a time in microseconds since the Unix epoch.
        They end with the subject of the stream. Raises JournalError.
        """
        ...

    async def get(self, digest: str) -> bytes | None:
        """The bytes of a digest; None if they are not kept, or no more. Raises JournalError."""
        ...


class MemoryKeeper:
    """Keeps bytes for as long as it lives: for calls that no journal records."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put(self, data: bytes, *, until: int | None = None) -> str:  # noqa: ARG002 - it does not last that long
        """Keep bytes; their digest."""
        digest = sha256(data)
        self.kept[digest] = data
        return digest

    async def get(self, digest: str) -> bytes | None:
        return self.kept.get(digest)
