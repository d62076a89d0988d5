"""A JSON schema as the rows of a table: each argument with its type, bounds and meaning. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from remit.pages.text import written

_DEEP: Final = 3
"""Objects inside objects that are shown; the schema itself has the rest."""
_MOST: Final = 100
_CUT: Final = 300
"""Characters of a bound or a default."""
_BOUNDS: Final = {
    "enum": "one of {}",
    "const": "exactly {}",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "format": "{}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    name: str
    """With the objects that it is in: `when.after`."""
    type: str
    required: bool
    default: str
    """As JSON; empty if there is none."""
    bounds: tuple[str, ...]
    about: str


def arguments(schema: Mapping[str, Any] | None) -> tuple[Argument, ...]:
    """The rows of an object's schema, at most 100; none for a schema of another form."""
    found: list[Argument] = []
    for row in _rows(schema or {}, schema or {}, "", 0):
        found.append(row)
        if len(found) == _MOST:
            break
    return tuple(found)


def _rows(schema: Mapping[str, Any], root: Mapping[str, Any], within: str, depth: int) -> Iterator[Argument]:
    properties, needed = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return
    for name, given in properties.items():
        shape = _followed(given, root)
        about = shape.get("description")
        yield Argument(
            name=f"{within}{name}",
            type=_type(shape, root),
            required=isinstance(needed, list) and name in needed,
            default=_short(shape["default"]) if "default" in shape else "",
            bounds=tuple(words.format(_short(shape[key])) for key, words in _BOUNDS.items() if key in shape),
            about=about if isinstance(about, str) else "",
        )
        inner = _followed(shape.get("items"), root) if shape.get("type") == "array" else shape
        if depth + 1 < _DEEP:
            mark = "[]." if inner is not shape else "."
            yield from _rows(inner, root, f"{within}{name}{mark}", depth + 1)


def _type(shape: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> str:
    for key in ("anyOf", "oneOf"):
        branches = shape.get(key)
        if isinstance(branches, list) and depth < _DEEP:
            words = dict.fromkeys(_type(_followed(each, root), root, depth + 1) for each in branches[:8])
            return " or ".join(words)
    sort = shape.get("type")
    if sort == "array" and depth < _DEEP:
        items = _type(_followed(shape.get("items"), root), root, depth + 1)
        return f"list of {items}" if items != "anything" else "list"
    if isinstance(sort, list):
        return " or ".join(str(each) for each in sort[:8])
    return str(sort)[:40] if sort else "anything"


def _followed(shape: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference within the same document means."""
    for _ in range(_DEEP):
        if not isinstance(shape, dict) or not isinstance(ref := shape.get("$ref"), str) or not ref.startswith("#/"):
            break
        found: Any = root
        for part in ref[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        shape = (
            {**found, **{key: each for key, each in shape.items() if key != "$ref"}} if isinstance(found, dict) else {}
        )
    return shape if isinstance(shape, dict) else {}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and value else " ".join(written(value).split())
    return text if len(text) <= _CUT else f"{text[:_CUT]}…"
