"""Schemas in the dialect that OpenAI can hold a model to while it writes.

An optimisation: a schema that the dialect cannot express is sent as it is, and what comes back is checked against the
owner's schema in any case.
"""

from __future__ import annotations

from typing import Any, Final

from remit.origins.roles import KEYWORD

_PLAIN: Final = frozenset({"type", "description", "enum", "const", "format", "pattern", "title", "minimum", "maximum"})
_KNOWN: Final = _PLAIN | {
    KEYWORD,
    "properties",
    "required",
    "items",
    "additionalProperties",
    "anyOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
}
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_MAX_LEVELS: Final = 5
_MAX_PROPERTIES: Final = 100


class _InexpressibleError(Exception):
    """The dialect has no word for it."""


def openai_strict(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema with every property required and the optional ones nullable; None if the dialect cannot say it."""
    budget = [_MAX_PROPERTIES]
    try:
        if schema.get("type") != "object":
            return None
        return _strict({name: value for name, value in schema.items() if name != "$schema"}, _MAX_LEVELS, budget)
    except _InexpressibleError:
        return None


def without_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """A value that a strict schema allowed, without the nulls that stand for optional properties left out."""
    if isinstance(value, list):
        items = schema.get("items")
        return [without_nulls(item, items) for item in value] if isinstance(items, dict) else value
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    required = schema.get("required") or ()
    return {
        name: without_nulls(item, properties[name]) if isinstance(properties.get(name), dict) else item
        for name, item in value.items()
        if item is not None or name in required or name not in properties or _nullable(properties[name])
    }


def _strict(schema: Any, levels: int, budget: list[int]) -> dict[str, Any]:
    if not isinstance(schema, dict) or not schema.keys() <= _KNOWN or levels == 0:
        raise _InexpressibleError
    if schema.get("format", "date") not in _FORMATS:
        raise _InexpressibleError
    found = {name: value for name, value in schema.items() if name != KEYWORD}
    if "anyOf" in schema:
        found["anyOf"] = [_strict(one, levels - 1, budget) for one in schema["anyOf"]]
    elif "type" not in schema and "enum" not in schema and "const" not in schema:
        raise _InexpressibleError
    if schema.get("type") == "array":
        found["items"] = _strict(schema.get("items"), levels - 1, budget)
    if schema.get("type") == "object" or "properties" in schema:
        found |= _object(schema, levels, budget)
    return found


def _object(schema: dict[str, Any], levels: int, budget: list[int]) -> dict[str, Any]:
    if schema.get("additionalProperties", False) is not False:
        raise _InexpressibleError
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    budget[0] -= len(properties)
    free = not properties and "additionalProperties" not in schema  # any names at all
    if budget[0] < 0 or free:
        raise _InexpressibleError
    strict = {name: _strict(one, levels - 1, budget) for name, one in properties.items()}
    return {
        "properties": {name: one if name in required else _or_null(one) for name, one in strict.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return schema if _nullable(schema) else {"anyOf": [schema, {"type": "null"}]}


def _nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    kind = schema.get("type")
    if kind is None:
        return None in schema["enum"] if "enum" in schema else any(map(_nullable, schema.get("anyOf", ())))
    return "null" in (kind if isinstance(kind, list) else [kind])
