"""Defaults that a tool sets and its schema does not declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

import msgspec
import pytest

from remit import CallContext, tool
from remit.tools.function import undeclared


class Options(msgspec.Struct):
    """A Struct."""

    at: float = msgspec.field(default_factory=lambda: 1.0)
    limit: int = 100
    names: list[str] = []
    extra: int | msgspec.UnsetType = msgspec.UNSET


@dataclass
class Job:
    """A dataclass that holds several, and itself."""

    options: Options
    more: dict[str, list[Options]] = field(default_factory=dict)
    before: Job | None = None
    key: str = field(default_factory=lambda: "made")


class Shape(TypedDict):
    """A TypedDict: what is left out stays out."""

    size: NotRequired[int]


def plain(path: str, ctx: CallContext, limit: int = 1, *, shape: Shape | None = None) -> None: ...
def nested(options: Options) -> None: ...
def deeper(jobs: list[Job]) -> None: ...
def either(what: Options | str = "x") -> None: ...
def odd(what: Any = ...) -> None: ...
def ready(path: str, limit: int = 100) -> None: ...


MADE = "(made by Options.<lambda> as the tool runs)"


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (plain, {}),
        (nested, {"options.at": MADE}),
        (
            deeper,
            {"jobs.options.at": MADE, "jobs.more.at": MADE, "jobs.key": MADE.replace("Options", "Job")},
        ),
        (either, {"what.at": MADE}),
        (odd, {"what": "(Ellipsis)"}),
    ],
)
def test_defaults_that_the_schema_does_not_declare_are_named(
    function: Callable[..., Any], places: dict[str, str]
) -> None:
    made = tool("odd.tool")(function)
    assert undeclared(made.function, made.meta.input_schema) == places


@pytest.mark.parametrize(("declared", "places"), [({}, {"limit": "(100)"}), ({"default": 100}, {})])
def test_a_ready_schema_declares_them_too(declared: dict[str, Any], places: dict[str, str]) -> None:
    schema = {"type": "object", "properties": {"path": {}, "limit": declared}, "required": ["path"]}
    made = tool("odd.ready", input_schema=schema)(ready)
    assert undeclared(made.function, made.meta.input_schema) == places
