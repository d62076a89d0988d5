from __future__ import annotations

import pytest

from remit.pages.memory import KEPT, Memory

pytestmark = pytest.mark.slow


async def test_a_thing_is_made_again_if_its_source_changed() -> None:
    made: list[int] = []
    memory = Memory()

    async def make() -> int:
        made.append(len(made))
        return made[-1]

    assert [await memory.get("a", source, make) for source in (1, 1, 2, 2, 1)] == [0, 0, 1, 1, 2]


async def test_what_was_asked_for_longest_ago_goes_first() -> None:
    made: list[int] = []
    memory = Memory()

    for name in [*range(KEPT), 0, KEPT, 0, 1]:

        async def make(name: int = name) -> int:
            made.append(name)
            return name

        assert await memory.get(name, None, make) == name
    assert made == [*range(KEPT + 1), 1]
