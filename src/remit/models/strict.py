"""Schemas in the dialect that OpenAI can hold a model to while it writes.

An optimisation: a schema that the dialect cannot express is sent as it is, and what comes back is checked against the
owner's schema in any case. OpenAI refuses a whole request for one schema beyond the limits, so they are kept narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Schema = dict[str, Any]

_ANY: Final = frozenset({"type", "description", "title", "enum", "const"})
_WORDS: Final[dict[str, frozenset[str]]] = {
    "string": frozenset({"format", "pattern"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}
"""The types of the dialect, and the words that each may have besides those of all."""
_UNION: Final = frozenset({"anyOf", "description", "title"})
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_LEVELS: Final = 5
_PROPERTIES: Final = 100
_VALUES: Final = 500
_CHARACTERS: Final = 15_000

LIMITS: Final[dict[str, Callable[[Schema], bool]]] = {
    "a type, a list of values, or a union": lambda schema: bool(schema.keys() & {"type", "enum", "const", "anyOf"}),
    "known types": lambda schema: all(kind in _WORDS for kind in types(schema)),
    "the words of its types": lambda schema: schema.keys() <= _allowed(schema),
    "a known format": lambda schema: schema.get("format", "date") in _FORMATS,
    "a pattern without looks ahead or back": lambda schema: "(?" not in schema.get("pattern", ""),
    "items of one form": lambda schema: "array" not in types(schema) or isinstance(schema.get("items"), dict),
    "no properties but those it names": lambda schema: schema.get("additionalProperties", False) is False,
    "its properties named": lambda schema: (
        "object" not in types(schema) or "properties" in schema or "required" not in schema
    ),
    "some properties, or none at all": lambda schema: "object" not in types(schema) or _named(schema),
    "no property required that is not named": lambda schema: {*_required(schema)} <= {*_properties(schema)},
    "a union of schemas": lambda schema: isinstance(schema.get("anyOf", []), list),
    "objects in a union that begin differently": lambda schema: _distinct(schema.get("anyOf") or []),
}
"""The limits that every schema within a strict one has to keep, by name; counts and levels are limited besides."""


class _InexpressibleError(Exception):
    """The dialect has no word for it."""


class _Counts:
    """The rest of the limits that hold for a schema as a whole."""

    def __init__(self) -> None:
        self._left = {"properties": _PROPERTIES, "values": _VALUES, "characters": _CHARACTERS}

    def take(self, schema: Schema) -> None:
        """Count one schema within. Raises _InexpressibleError."""
        names, values = (
            list(_properties(schema)),
            [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())],
        )
        self._left["properties"] -= len(names)
        self._left["values"] -= len(values)
        self._left["characters"] -= sum(len(text) for text in (*names, *values) if isinstance(text, str))
        if min(self._left.values()) < 0:
            raise _InexpressibleError


def openai_strict(schema: Schema) -> Schema | None:
    """The schema with every property required and the optional ones nullable; None if the dialect cannot say it."""
    try:
        if schema.get("type") != "object":
            return None
        return _strict({name: value for name, value in schema.items() if name != "$schema"}, _LEVELS, _Counts())
    except _InexpressibleError:
        return None


def types(schema: Schema) -> list[Any]:
    """The types that a schema names; none if it names none."""
    kind = schema.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def without_nulls(value: Any, schema: Any) -> Any:
    """A value that a strict schema allowed, without the nulls that stand for optional properties left out."""
    if not isinstance(schema, dict):
        return value
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        branch = next((candidate for candidate in branches if _answers(value, candidate)), None)
        value = value if branch is None else without_nulls(value, branch)
    if isinstance(value, list):
        items = schema.get("items")
        return [without_nulls(item, items) for item in value] if isinstance(items, dict) else value
    properties = _properties(schema)
    if not isinstance(value, dict) or not properties:
        return value
    required = _required(schema)
    return {
        name: without_nulls(item, properties.get(name))
        for name, item in value.items()
        if item is not None or name in required or name not in properties or _nullable(properties[name])
    }


def _strict(schema: Any, levels: int, counts: _Counts) -> Schema:
    from remit.origins.roles import KEYWORD  # noqa: PLC0415 - its patterns cost every program's start a millisecond

    if not isinstance(schema, dict) or levels == 0:
        raise _InexpressibleError
    strict = {name: value for name, value in schema.items() if name != KEYWORD}
    if not all(holds(strict) for holds in LIMITS.values()):
        raise _InexpressibleError
    counts.take(strict)
    if "anyOf" in strict:
        strict["anyOf"] = [_strict(branch, levels - 1, counts) for branch in strict["anyOf"]]
    if "array" in types(strict):
        strict["items"] = _strict(strict["items"], levels - 1, counts)
    if "object" in types(strict):
        required = _required(strict)
        inner = {name: _strict(branch, levels - 1, counts) for name, branch in _properties(strict).items()}
        strict["properties"] = {
            name: branch if name in required else _or_null(branch) for name, branch in inner.items()
        }
        strict |= {"required": list(inner), "additionalProperties": False}
    return strict


def _allowed(schema: Schema) -> frozenset[str]:
    if "anyOf" in schema:
        return _UNION
    return _ANY.union(*(_WORDS.get(kind, ()) for kind in types(schema)))


def _properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Schema) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _named(schema: Schema) -> bool:
    """Return whether an object has properties, or says that it has none; else it may have any."""
    return bool(_properties(schema)) or "additionalProperties" in schema


def _distinct(branches: Any) -> bool:
    firsts = [
        next(iter(_properties(branch)), "")
        for branch in branches
        if isinstance(branch, dict) and "object" in types(branch)
    ]
    return len(firsts) == len(set(firsts))


def _or_null(schema: Schema) -> Schema:
    return schema if _nullable(schema) else {"anyOf": [schema, {"type": "null"}]}


def _nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    if "enum" in schema or "const" in schema:
        return None in schema.get("enum", [schema.get("const")]) and ("type" not in schema or "null" in types(schema))
    if "type" in schema:
        return "null" in types(schema)
    return any(map(_nullable, schema["anyOf"])) if "anyOf" in schema else True


_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
    "array": list,
    "object": dict,
}


def _answers(value: Any, schema: Any) -> bool:
    """Return whether a value has the form that the strict schema of `schema` demands: all properties, and no others."""
    if not isinstance(schema, dict) or not _is_among(value, schema):
        return False
    if "anyOf" in schema:
        return any(_answers(value, branch) for branch in schema["anyOf"])
    if isinstance(value, list):
        return all(_answers(item, schema.get("items", {})) for item in value)
    if not isinstance(value, dict):
        return True
    properties, required = _properties(schema), _required(schema)
    return value.keys() == properties.keys() and all(
        (item is None and name not in required) or _answers(item, properties[name]) for name, item in value.items()
    )


def _is_among(value: Any, schema: Schema) -> bool:
    """Return whether a value is one of those that are listed, and of the types that are named."""
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    kinds = types(schema)
    return not kinds or any(_is(value, kind) for kind in kinds)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):
        return bool(kind == "boolean")
    return isinstance(value, _KINDS.get(kind, ()))
