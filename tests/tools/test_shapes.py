from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from remit.errors import ProviderError
from remit.tools.provider import arguments, struct_schema, unindented
from remit.tools.schema import compile_schema


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    n: int


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    """What it takes."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    inner: list[Inner] = []


def test_the_schema_and_the_struct_accept_the_same() -> None:
    compiled = compile_schema(struct_schema(Outer), closed=True)
    fitting: list[dict[str, Any]] = [{"name": "a"}, {"name": "a", "inner": [{"n": 1}]}]
    for args in fitting:
        assert compiled.problems(args) == []
        assert arguments(Outer, args).name == "a"
    misfits: list[dict[str, Any]] = [{}, {"name": ""}, {"name": "a", "inner": [{"n": "1"}]}, {"name": "a", "more": 1}]
    for args in misfits:
        assert compiled.problems(args)
        with pytest.raises(ProviderError):
            arguments(Outer, args)


def test_the_schema_carries_the_description() -> None:
    assert struct_schema(Outer)["description"] == "What it takes."


def test_no_version_of_python_indents_a_description() -> None:
    class Order(msgspec.Struct):
        """An order.

        Its lines follow.
        """

        note: str = "  as it is\n  written"

    Order.__doc__ = "An order.\n\n        Its lines follow.\n        "  # as Python 3.12 keeps it
    schema = struct_schema(Order)
    assert schema["description"] == "An order.\n\nIts lines follow."
    assert schema["properties"]["note"]["default"] == "  as it is\n  written"
    assert unindented({"default": {"description": " a\n  b"}}) == {"default": {"description": " a\n  b"}}
