"""What is shown is what runs, at every depth: a field that a nested type does not have is refused, not dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from remit import tool
from remit.codes import Code
from tests.gateway.world import opened

ran: list[object] = []


class Options(msgspec.Struct):
    """A Struct, with a field of a name that schemas use too."""

    dry_run: bool = False
    properties: dict[str, int] = {}


@dataclass
class Record:
    """A dataclass that holds another type."""

    inner: Options
    name: str = ""


class Shape(TypedDict):
    """A TypedDict."""

    size: int


class Circle(msgspec.Struct, tag=True):
    """One of two."""

    radius: int


class Square(msgspec.Struct, tag=True):
    """The other."""

    side: int


@tool("odd.struct")
def struct(opts: Options) -> None:
    """Take a Struct."""
    ran.append(opts)


@tool("odd.listed")
def listed(opts: list[Annotated[Options, msgspec.Meta(description="one")]]) -> None:
    """Take a list of them."""
    ran.append(opts)


@tool("odd.held")
def held(opts: Record | None = None) -> None:
    """Take a dataclass, or nothing."""
    ran.append(opts)


@tool("odd.shaped")
def shaped(opts: dict[str, Shape]) -> None:
    """Take TypedDicts by name."""
    ran.append(opts)


@tool("odd.either")
def either(opts: Circle | Square) -> None:
    """Take one of two."""
    ran.append(opts)


CASES: list[tuple[str, Any, Any]] = [
    ("odd.struct", {"dry_run": True, "properties": {"x": 1}}, {"dryRun": True}),
    ("odd.listed", [{"dry_run": True}], [{"dry_run": True}, {"dryRun": True}]),
    ("odd.held", {"inner": {"dry_run": True}}, {"inner": {"dryRun": True}}),
    ("odd.held", {"inner": {}}, {"inner": {}, "nmae": "x"}),
    ("odd.shaped", {"a": {"size": 1}}, {"a": {"size": 1, "colour": "red"}}),
    ("odd.either", {"type": "Circle", "radius": 1}, {"type": "Circle", "radius": 1, "side": 2}),
]


@pytest.mark.parametrize(("name", "good", "bad"), CASES)
async def test_a_field_that_a_nested_type_does_not_have_is_refused(name: str, good: Any, bad: Any) -> None:
    ran.clear()
    allow = [{"id": "all", "effect": "allow", "tools": ["*"]}]
    async with opened(struct, listed, held, shaped, either, rules=allow) as world:
        outcome = await world.call(name, {"opts": bad})
        assert (outcome.code, ran) == (Code.INVALID_TOOL_ARGS, [])
        assert (await world.call(name, {"opts": good}, step="2")).ok
        assert len(ran) == 1
