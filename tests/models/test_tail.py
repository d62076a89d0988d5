from __future__ import annotations

import asyncio

from remit.models.reply import Delta
from remit.models.tail import MAX_CHARACTERS, AnswerPiece, Tails


async def _read(tails: Tails, count: int, after: int = 0) -> list[AnswerPiece]:
    found: list[AnswerPiece] = []
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


async def test_what_is_being_said_is_the_text_of_answers_that_go_on() -> None:
    tails = Tails()
    assert tails.speech("job/j") == {}
    with tails.open("job/j", "1") as first:
        first(Delta("text", "It is "))
        first(Delta("reasoning", "hm"))
        with tails.open("job/j", "2") as second:
            second(Delta("text", "Or "))
            first(Delta("text", "milk."))
            assert tails.speech("job/j") == {"1": "It is milk.", "2": "Or "}
        assert tails.speech("job/j") == {"1": "It is milk."}
    with tails.open("job/j", "1") as again:
        assert tails.speech("job/j") == {}
        again(Delta("text", "Once more"))
        assert tails.speech("job/j") == {"1": "Once more"}


async def test_who_waits_is_told_how_much_was_said() -> None:
    tails = Tails()
    waiting = asyncio.create_task(tails.heard("job/j", 0))
    await asyncio.wait([waiting], timeout=0)
    with tails.open("job/j", "1") as watch:
        watch(Delta("text", "Hello"))
        assert await waiting == 5
        watch(Delta("text", "!"))
        assert await tails.heard("job/j", 5) == 6
    assert tails._tails == {}


async def test_nothing_is_kept_once_nobody_speaks_or_watches() -> None:
    tails = Tails()
    with tails.open("job/j", "1") as watch:
        watch(Delta("text", "x"))
    assert tails._tails == {}
