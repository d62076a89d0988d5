"""Blobs that are kept for a while only."""

from __future__ import annotations

import msgspec

from remit.canonical import sha256
from remit.journal.event import Blob
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import Storage, job, note


def _blob(text: str, until: int | None) -> Blob:
    return Blob(sha256(text.encode()), text.encode(), until)


async def check_blobs_are_erased_once_their_time_is_over(storage: Storage) -> None:
    """Not before; those without a time never; and what else was recorded stays."""
    clock = ManualClock()
    async with storage.open(clock) as journal:
        writer = await job(journal, "job/a")
        ends = clock.now() + 1_000
        many = tuple(_blob(f"short {number}", ends) for number in range(250))
        longer, lasting = _blob("longer", ends + 1), _blob("kept", None)
        await journal.append(writer, note(1), synced=True, blobs=(*many, longer, lasting))
        assert await journal.prune() == 0
        clock.advance(0.001)
        assert await journal.prune() == len(many)
        assert [await journal.blob(blob.digest) for blob in (many[0], longer, lasting)] == [None, b"longer", b"kept"]
        clock.advance(1_000)
        assert await journal.prune() == 1
        assert await journal.blob(lasting.digest) == b"kept"
        assert await journal.verify("job/a") > 0


async def check_the_longest_time_wins(storage: Storage) -> None:
    """The same bytes recorded twice are kept as long as the longer of both asks, whichever comes first."""
    clock = ManualClock()
    async with storage.open(clock) as journal:
        writer = await job(journal, "job/a")
        soon, late = clock.now() + 1, clock.now() + 2_000_000
        retentions = {"a": (soon, None), "b": (None, soon), "c": (soon, late), "d": (late, soon), "e": (soon, soon)}
        for text, times in retentions.items():
            for until in times:
                await journal.append(writer, note(1), synced=False, blobs=(_blob(text, until),))
        clock.advance(1)
        assert await journal.prune() == 1
        left = {text for text in retentions if await journal.blob(_blob(text, None).digest)}
        assert left == {"a", "b", "c", "d"}
        clock.advance(1)
        assert await journal.prune() == len(("c", "d"))


async def check_what_was_erased_can_be_kept_again(storage: Storage) -> None:
    """A digest that was erased is like one that was never there."""
    clock = ManualClock()
    async with storage.open(clock) as journal:
        writer = await job(journal, "job/a")
        once = _blob("once more", clock.now())
        await journal.append(writer, note(1), synced=True, blobs=(once,))
        assert await journal.prune() == 1
        again = msgspec.structs.replace(once, until=None)
        await journal.append(writer, note(1), synced=True, blobs=(again,))
        assert await journal.prune() == 0
        assert await journal.blob(once.digest) == once.data
