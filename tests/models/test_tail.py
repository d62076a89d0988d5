from __future__ import annotations

import asyncio

from remit.models.reply import Delta
from remit.models.tail import MAX_CHARACTERS, Piece, Tails


async def _read(tails: Tails, count: int, after: int = 0) -> list[Piece]:
    found: list[Piece] = []
    async for piece in tails.follow("job/j", after):
        found.append(piece)
        if len(found) == count:
            break
    return found


async def test_pieces_are_addressed_by_offset_and_can_be_taken_up_again() -> None:
    tails = Tails()
    with tails.open("job/j", "1") as watch:
        watch(Delta("text", "Hello, "))
        watch(Delta("text", "world"))
        assert [(one.offset, one.delta.text) for one in await _read(tails, 2)] == [(0, "Hello, "), (7, "world")]
        assert [one.delta.text for one in await _read(tails, 1, after=7)] == ["world"]


async def test_a_watcher_that_came_first_gets_what_comes() -> None:
    tails = Tails()
    reading = asyncio.create_task(_read(tails, 1))
    await asyncio.wait([reading], timeout=0)
    await asyncio.wait([reading], timeout=0)
    with tails.open("job/j", "2.1") as watch:
        watch(Delta("text", "hi"))
        assert [one.step for one in await reading] == ["2.1"]


async def test_what_is_kept_is_bounded_and_a_gap_shows() -> None:
    tails = Tails()
    with tails.open("job/j", "1") as watch:
        for _ in range(10):
            watch(Delta("text", "x" * (MAX_CHARACTERS // 4)))
        kept = await _read(tails, 4)
    assert kept[0].offset == MAX_CHARACTERS // 4 * 6


async def test_nothing_is_kept_once_nobody_speaks_or_watches() -> None:
    tails = Tails()
    with tails.open("job/j", "1") as watch:
        watch(Delta("text", "x"))
    assert tails._tails == {}
