from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.errors import NameInvalidError, UsageError


@recipe
async def greeting(run: Run, who: str) -> str:
    """Greet."""
    return f"Hello, {who}"


@recipe(version="2")
async def farewell(run: Run, who: str) -> str:
    """Take leave."""
    return await run.child(greeting(who))


async def test_a_recipe_without_a_name_has_that_of_its_function() -> None:
    async with Remit(":memory:", recipes=[greeting, farewell], policy=[]) as remit:
        assert await remit.run(farewell("Ada")) == "Hello, Ada"
    assert (greeting.name, greeting.version) == ("greeting", "1")
    assert (farewell.name, farewell.version) == ("farewell", "2")


def test_a_function_that_cannot_be_a_recipe_is_refused_where_it_is_decorated() -> None:
    with pytest.raises(UsageError, match="is not an async function"):

        @recipe  # type: ignore[arg-type]
        def plain(run: Run) -> int:
            return 1

    with pytest.raises(NameInvalidError, match="'Capital' is not a recipe name"):

        @recipe
        async def Capital(run: Run) -> int:  # noqa: N802 - the name is what is tested
            return 1


class Speed(Enum):
    SLOW = "langsam"
    FAST = "schnell"


@pytest.mark.parametrize("hint", [Speed, Speed | None])
def test_an_unknown_value_of_an_enumeration_names_those_that_can_be_written(hint: Any) -> None:
    async def drives(run: Run, speed: Any) -> None:
        """Drive."""

    drives.__annotations__["speed"] = hint
    with pytest.raises(UsageError, match=r"speed: Invalid enum value 'SLOW'.*; write one of: langsam, schnell"):
        recipe("drives")(drives).bind({"speed": "SLOW"}, strict=False)


def test_a_value_of_the_wrong_type_names_its_parameter() -> None:
    @recipe("counts")
    async def counts(run: Run, lines: int) -> int:
        return lines

    with pytest.raises(UsageError, match=r"counts: lines: Expected `int`, got `str`"):
        counts.bind({"lines": "many"}, strict=False)
