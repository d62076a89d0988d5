"""The shard of a stream, and positions over all shards.

A stream belongs to its root (`job/J` of `job/J/inbox`), and the root's digest says the shard: nothing has to be looked
up, and nothing written together is ever on two. The number of shards never changes; a shard may change its server.

A position over all shards counts through them: with three shards, the first event of each has 1, 2 and 3, the second
4, 5 and 6. Positions that a shard never used stay free, so that all shards reach about as far (store.py, `_level`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from hashlib import sha256
from typing import Final

from remit.ids import new_id

_TRIES: Final = 50
_KNOWN: Final = 65_536
"""Streams whose shard is remembered."""


@lru_cache(maxsize=_KNOWN)
def shard_of(stream: str, count: int) -> int:
    """Return the number, from 0, of the shard that a stream is on."""
    root = "/".join(stream.split("/", 2)[:2])
    return int.from_bytes(sha256(root.encode()).digest()[:8]) % count


def to_global(position: int, shard: int, count: int) -> int:
    """Return the position over all shards of a position, from 1, on one of them."""
    return (position - 1) * count + shard + 1


def to_local(position: int, shard: int, count: int) -> int:
    """Return the last position of a shard that is not behind a position over all of them; 0: none."""
    return (position - shard - 1) // count + 1


async def new_identifier(prefix: str, kind: str, answers: Callable[[str], Awaitable[bool]]) -> str:
    """Return an identifier of a stream `KIND/…` where the journal `answers`, or any if none of a few tries is there."""
    identifier = new_id(prefix)
    for _ in range(_TRIES):
        if await answers(f"{kind}/{identifier}"):
            break
        identifier = new_id(prefix)
    return identifier
