"""Lookups that come at the same time share one question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from remit.codes import Code
from remit.errors import JournalError
from remit.journal.postgres.store import Lookups
from tests.patience import PATIENCE_S


class Answers:
    """Doubles every number, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def ask(self, keys: Sequence[int]) -> list[int]:
        self.asked.append(list(keys))
        await self.open.wait()
        if 13 in keys:
            raise JournalError("the server is away", code=Code.JOURNAL_IO)
        return [2 * key for key in keys]


async def test_what_is_looked_up_at_once_is_asked_in_one_question() -> None:
    answers = Answers()
    lookups = Lookups(answers.ask, 10)
    assert await asyncio.gather(*map(lookups.find, range(5))) == [0, 2, 4, 6, 8]
    assert answers.asked == [[0, 1, 2, 3, 4]]
    assert await lookups.find(7) == 14


async def test_no_question_is_longer_than_allowed() -> None:
    answers = Answers()
    lookups = Lookups(answers.ask, 2)
    assert await asyncio.gather(*map(lookups.find, range(5))) == [0, 2, 4, 6, 8]
    assert max(map(len, answers.asked)) == 2


async def test_what_comes_while_all_questions_are_open_waits_and_goes_together() -> None:
    answers = Answers()
    answers.open.clear()
    lookups = Lookups(answers.ask, 10)
    found = []
    for key in range(6):
        found.append(asyncio.ensure_future(lookups.find(key)))
        while len(answers.asked) < min(key + 1, 2):
            await asyncio.wait([found[-1]], timeout=0)
    answers.open.set()
    assert await asyncio.gather(*found) == [0, 2, 4, 6, 8, 10]
    assert answers.asked == [[0], [1], [2, 3, 4, 5]]


async def test_a_question_that_fails_fails_for_all_who_asked_and_for_no_others() -> None:
    lookups = Lookups(Answers().ask, 2)
    failed = await asyncio.gather(*map(lookups.find, (13, 1, 2, 3)), return_exceptions=True)
    assert [getattr(one, "code", one) for one in failed] == [Code.JOURNAL_IO, Code.JOURNAL_IO, 4, 6]
    assert failed[0] is not failed[1]


async def test_who_asks_again_at_once_is_answered_again() -> None:
    lookups = Lookups(Answers().ask, 1)

    async def asks() -> None:
        for key in range(10):
            assert await lookups.find(key) == 2 * key

    await asyncio.wait_for(asyncio.gather(asks(), asks(), asks()), PATIENCE_S)


async def test_who_no_longer_waits_takes_nothing_from_the_others() -> None:
    answers = Answers()
    lookups = Lookups(answers.ask, 10)
    left, stays = asyncio.ensure_future(lookups.find(1)), asyncio.ensure_future(lookups.find(2))
    await asyncio.wait([left], timeout=0)
    left.cancel()
    assert await stays == 4
    with pytest.raises(asyncio.CancelledError):
        await left
