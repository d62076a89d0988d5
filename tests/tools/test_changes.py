"""Changes of a schema in words."""

from __future__ import annotations

from typing import Any

import pytest

from remit.tools.changes import MOST, changes


def of(**properties: Any) -> dict[str, Any]:
    required = [name for name, one in properties.items() if one.pop("must", False)]
    return {"type": "object", "properties": properties, "required": required}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (of(a=TEXT), of(a=TEXT), []),
        (of(), of(a=TEXT), ["a: new, optional"]),
        (of(), of(a={**TEXT, "must": True}), ["a: new, required"]),
        (of(a=TEXT), of(), ["a: removed"]),
        (of(a={**TEXT, "must": True}), of(), ["a: removed, was required"]),
        (of(a=TEXT), of(a={**TEXT, "must": True}), ["a: required now"]),
        (of(a={**TEXT, "must": True}), of(a=TEXT), ["a: optional now"]),
        (of(a=TEXT), of(a={"type": "integer"}), ["a: string → integer"]),
        (of(a={"enum": ["x", "y"]}), of(a={"enum": ["y", "z"]}), ["a: no longer x", "a: also z"]),
        (of(a={"maximum": 9}), of(a={"maximum": 3}), ["a: maximum 9 → 3"]),
        (of(a={"pattern": "a+"}), of(a={}), ["a: pattern a+ → none"]),
        (of(a={"items": TEXT}), of(a={"items": {"type": "number"}}), ["a[]: string → number"]),
        (of(a=of(b=TEXT)), of(a=of()), ["a.b: removed"]),
        (
            of(a={**TEXT, "description": "One."}),
            of(a={"type": "null", "description": "Two."}),
            ["a: string → null", "a: other words"],
        ),
        ({"additionalProperties": True}, {"additionalProperties": False}, ["*: true → false"]),
        ({"title": "x" * 99}, {}, [f"as a whole: title {'x' * 59}… → none"]),
        (None, {"type": "object"}, ["arguments: a schema where there was none"]),
        ({"type": "object"}, None, ["arguments: no schema any more"]),
        (None, None, []),
    ],
)
def test_each_place_that_differs_is_told_in_a_line(old: Any, new: Any, told: list[str]) -> None:
    assert list(changes(old, new)) == told


def test_of_very_many_places_the_first_are_told() -> None:
    found = changes(of(), of(**{f"f{number}": dict(TEXT) for number in range(100)}))
    assert len(found) == MOST + 1
    assert found[-1] == f"and {100 - MOST} more"


@pytest.mark.parametrize(
    "schema", [{"properties": 1}, {"required": [1, None]}, {"enum": "x", "items": []}, {"a": {1: 2}}]
)
def test_a_schema_that_is_none_is_told_too(schema: Any) -> None:
    assert changes({}, schema) is not None
    assert changes(schema, {}) is not None
